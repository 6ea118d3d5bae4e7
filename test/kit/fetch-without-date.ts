/** A fetch for services with a test clock: it removes the Date header, which Node sets from the machine's clock. */
export async function fetchWithoutDate(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const { status, headers, body } = await original(url, init);
  const kept = new Headers(headers);
  kept.delete('Date');
  return new Response(body, { status, headers: kept });
}

// Saved because moved-clock.ts replaces the global fetch with the function above.
const original = globalThis.fetch;
