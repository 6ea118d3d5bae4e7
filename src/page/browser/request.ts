// Reads from the service. A truncated response, or one from a proxy or portal, is a failed read, which proves nothing about the lines.

const NOT_FOUND = 404;

/** Resolves to the service's own response, successful or 404; throws on any other response. */
export async function request(url: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const { status, ok, headers } = response;
  if (!ok && status !== NOT_FOUND) throw new Error(`the response has the status ${status}`);
  // The service sends pages only to browsers that prefer them; portals and gateways send pages to every client.
  if (headers.get('Content-Type')?.startsWith('text/html')) throw new Error('the response is a web page');
  return response;
}

/** Resolves to the parsed JSON, or undefined for 404; throws like `request`. */
export async function requestJson(url: string, init?: RequestInit): Promise<unknown> {
  const response = await request(url, init);
  return response.ok ? await response.json() : undefined;
}
