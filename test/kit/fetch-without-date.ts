/** A fetch for services with a test's clock: Node sets the Date header from the machine's clock. */
export async function fetchWithoutDate(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const { status, headers, body } = await original(url, init);
  const kept = new Headers(headers);
  kept.delete('Date');
  return new Response(body, { status, headers: kept });
}

// moved-clock.ts replaces it with the function above.
const original = globalThis.fetch;
