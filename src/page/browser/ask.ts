// Reads from the service. A response by a proxy or a portal, or a truncated one, is a failed read, which proves nothing about the lines.

const NOT_FOUND = 404;

/** The service's own response, successful or 404; throws on any other. */
export async function ask(url: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const { status, ok, headers } = response;
  if (!ok && status !== NOT_FOUND) throw new Error(`the response has the status ${status}`);
  // The service sends pages only to browsers that prefer them; portals and gateways send them to everybody.
  if (headers.get('Content-Type')?.startsWith('text/html')) throw new Error('a web page came instead');
  return response;
}

/** JSON; undefined for 404; throws as `ask` does. */
export async function askForJson(url: string, init?: RequestInit): Promise<unknown> {
  const response = await ask(url, init);
  return response.ok ? await response.json() : undefined;
}
