// The parts of a request that handlers read: headers, the target as signed, and the body as bytes, text and strictly parsed JSON.
import { isUtf8 } from 'node:buffer';
import { toBaseUrl } from '../crypto/wallet-texts.ts';
import { ForumError, invalid } from '../vocabulary/errors.ts';
import { parseJson } from '../vocabulary/json.ts';
import type { JsonValue } from '../vocabulary/values.ts';
import type { ForumContext } from './context.ts';

/**
 * Returns a request header by its lower-case name, with repeated lines joined by ", ". Reads Node's request if there is one, because hono
 * checks and copies on every access.
 */
export function header(c: ForumContext, name: string): string | undefined {
  const { incoming } = c.env;
  if (incoming === undefined) return c.req.header(name);
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** Returns the URLs that the client may have used, most likely first, with the raw target, never normalised (RFC 9421, 2.2.2). */
export function targetUris(c: ForumContext, publicUrls: readonly string[]): readonly string[] {
  let target = c.env.incoming?.url;
  if (target === undefined) {
    const { pathname, search } = new URL(c.req.url);
    target = pathname + search;
  }
  return baseUrls(c, publicUrls).map((url) => url + target);
}

/** Returns the public URLs, starting with the URL that the Host header names; without public URLs, the URL of the request. */
function baseUrls(c: ForumContext, publicUrls: readonly string[]): readonly [string, ...string[]] {
  // Requests without a socket have their host only in the URL.
  const host = header(c, 'host') ?? (c.env.incoming === undefined ? new URL(c.req.url).host : '');
  const [first, ...others] = publicUrls;
  if (first === undefined) return [`http://${host}`];
  const used = publicUrls.find((url) => url.endsWith(`//${host}`) || url.includes(`//${host}/`));
  return used === undefined ? [first, ...others] : [used, ...publicUrls.filter((url) => url !== used)];
}

/** Returns the base URL that the client uses, which its signatures cover. */
export function baseUrlOf(c: ForumContext, publicUrls: readonly string[]): string {
  return baseUrls(c, publicUrls)[0];
}

/**
 * Returns the names of the service that a wallet proof may contain: its base URLs, which other services on the same origin do not share,
 * and their origins, which earlier clients sign.
 */
export function serviceNames(c: ForumContext, publicUrls: readonly string[]): readonly string[] {
  const urls = baseUrls(c, publicUrls).map((url) => new URL(url));
  return [...new Set([...urls.map(toBaseUrl), ...urls.map(({ origin }) => origin)])];
}

export interface RequestBody {
  readonly bytes: Uint8Array;
  /** '' for a request without a body. */
  readonly text: string;
  /** undefined for a request without a body. */
  readonly json: JsonValue | undefined;
}

const NO_BODY: RequestBody = { bytes: new Uint8Array(0), text: '', json: undefined };
const JSON_TYPE = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;
/** Limits the values in a body, so that clients and auditors accept the request's log line (READ_LIMITS). */
const BODY_VALUES_MAX = 40_000;

/** Throws FORUM_ERR_TOO_LARGE, FORUM_ERR_MEDIA_TYPE or FORUM_ERR_VALIDATION, in this order. */
export async function readBody(c: ForumContext, maxBytes: number): Promise<RequestBody> {
  // The adapter reads for another half second, so that a client that is still sending gets the response, then closes the connection.
  const tooLarge = () => new ForumError('FORUM_ERR_TOO_LARGE', `body: at most ${maxBytes} bytes are accepted`);
  if (Number(header(c, 'content-length') ?? 0) > maxBytes) throw tooLarge();
  const { incoming } = c.env;
  const chunks: Uint8Array[] = incoming === undefined ? [new Uint8Array(await c.req.arrayBuffer())] : [];
  if (incoming !== undefined) {
    await new Promise<void>((resolve, reject) => {
      let size = 0;
      incoming.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size <= maxBytes) chunks.push(chunk);
        else reject(tooLarge());
      });
      incoming.once('end', resolve);
      // Node reports an aborted request only to this listener.
      incoming.once('error', () => reject(invalid('body: the connection was closed before the end of the body')));
    });
  }
  const [first = NO_BODY.bytes] = chunks;
  const bytes = chunks.length > 1 ? Buffer.concat(chunks) : first;
  if (bytes.length > maxBytes) throw tooLarge();
  if (bytes.length === 0) return NO_BODY;
  if ((header(c, 'content-encoding') ?? 'identity').toLowerCase() !== 'identity') {
    throw new ForumError('FORUM_ERR_MEDIA_TYPE', 'Content-Encoding: compressed bodies are not accepted');
  }
  if (!JSON_TYPE.test(header(c, 'content-type') ?? '')) {
    throw new ForumError('FORUM_ERR_MEDIA_TYPE', 'Content-Type: must be application/json');
  }
  if (!isUtf8(bytes)) throw invalid('body: the bytes are not UTF-8');
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  return { bytes, text, json: parseJson(text, BODY_VALUES_MAX) };
}
