// Requests over a real socket, signed once and sent repeatedly with the same bytes.
import type { Signer } from './signer.ts';

export interface Wire {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export interface WireOptions {
  /** Signs the request; a request without a signer is unsigned. */
  readonly by?: Signer | undefined;
  /** Sent as JSON, except that a string is sent unchanged. */
  readonly body?: unknown;
  /** The base URL that the signature covers. */
  readonly publicUrl: string;
  /** Milliseconds; the wall clock's time by default. */
  readonly now?: number;
}

export interface WireAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: responses are JSON, which every test reads in its own way
  readonly body: any;
  readonly headers: Headers;
}

export function prepare(method: string, path: string, options: WireOptions): Wire {
  const { by, body, publicUrl, now = Date.now() } = options;
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const signature = by?.sign({ method, url: publicUrl + path, body: text, created: Math.floor(now / 1000) });
  const type: Record<string, string> = text === undefined ? {} : { 'content-type': 'application/json' };
  return { method, path, body: text, headers: { ...type, ...signature } };
}

export async function send(
  url: string,
  { method, path, body, headers }: Wire,
  signal: AbortSignal | null = null,
): Promise<WireAnswer> {
  const response = await fetch(url + path, { method, headers, signal, ...(body === undefined ? {} : { body }) });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers };
}

export async function get(url: string, path: string, signal: AbortSignal | null = null): Promise<WireAnswer> {
  return send(url, { method: 'GET', path, body: undefined, headers: {} }, signal);
}

export function registrationOf({ pubkeyHex }: Signer) {
  return { pubkeyHex, walletAddress: `0x${'ab'.repeat(20)}`, operatorEmail: 'op@example.org', personality: {} };
}
