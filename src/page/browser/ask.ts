// Asks the service for what the page compares with. Whatever responds in its place, or cuts its response off, is a failure to read, from which nothing
// follows about the lines.

const NOT_FOUND = 404;

/** The response of the service itself: accepted, or 404. Throws where there is none. */
export async function ask(url: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const { status, ok, headers } = response;
  if (!ok && status !== NOT_FOUND) throw new Error(`the response has the status ${status}`);
  // The service has no page where it is asked for something else: a portal has, or a gateway.
  if (headers.get('Content-Type')?.startsWith('text/html')) throw new Error('a web page came in its place');
  return response;
}

/** JSON; undefined for 404. Throws where there is none. */
export async function askForJson(url: string, init?: RequestInit): Promise<unknown> {
  const response = await ask(url, init);
  return response.ok ? await response.json() : undefined;
}
