// The parts of a request that handlers read: headers, the target as signed, and the body as raw bytes, text and strictly parsed JSON.
import { isUtf8 } from 'node:buffer';
import { toBaseUrl } from '../crypto/wallet-texts.ts';
import { ForumError, invalid } from '../vocabulary/errors.ts';
import { parseJson } from '../vocabulary/json.ts';
import type { JsonValue } from '../vocabulary/values.ts';
import type { ForumContext } from './context.ts';

/**
 * A request header by its lower-case name; several lines of one are joined by ", ". Read from Node's own table where there is
 * one, because hono checks and copies on every access.
 */
export function header(c: ForumContext, name: string): string | undefined {
  const { incoming } = c.env;
  if (incoming === undefined) return c.req.header(name);
  const value = incoming.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** The URLs that the client may have used, most likely first. The raw target counts, never a normalised URL (RFC 9421, 2.2.2). */
export function targetUris(c: ForumContext, publicUrls: readonly string[]): readonly string[] {
  let target = c.env.incoming?.url;
  if (target === undefined) {
    const { pathname, search } = new URL(c.req.url);
    target = pathname + search;
  }
  return baseUrls(c, publicUrls).map((url) => url + target);
}

/** The service's addresses, the one that the client used first where that shows: the public ones, else that of the request. */
function baseUrls(c: ForumContext, publicUrls: readonly string[]): readonly [string, ...string[]] {
  // Only a request that came without a socket may have its host in its URL alone.
  const host = header(c, 'host') ?? (c.env.incoming === undefined ? new URL(c.req.url).host : '');
  const [first, ...others] = publicUrls;
  if (first === undefined) return [`http://${host}`];
  const used = publicUrls.find((url) => url.endsWith(`//${host}`) || url.includes(`//${host}/`));
  return used === undefined ? [first, ...others] : [used, ...publicUrls.filter((url) => url !== used)];
}

/** The address as the client knows the service: signatures must cover it. */
export function baseUrlOf(c: ForumContext, publicUrls: readonly string[]): string {
  return baseUrls(c, publicUrls)[0];
}

/**
 * What a wallet may call the service in what it signs: its addresses, so that another service on the same origin is not meant; and their
 * origins, which earlier clients name.
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
/** The line of such a request, which also holds what was decided, is within the limit of clients and auditors (READ_LIMITS). */
const BODY_VALUES_MAX = 40_000;

/** Throws FORUM_ERR_TOO_LARGE, FORUM_ERR_MEDIA_TYPE or FORUM_ERR_VALIDATION, in this order. */
export async function readBody(c: ForumContext, maxBytes: number): Promise<RequestBody> {
  // The adapter reads on for half a second, so that a client that is still sending gets the response, and then cuts it off.
  const tooLarge = () => new ForumError('FORUM_ERR_TOO_LARGE', `body: at most ${maxBytes} bytes are accepted`);
  if (Number(header(c, 'content-length') ?? 0) > maxBytes) throw tooLarge();
  const { incoming } = c.env;
  const chunks: Uint8Array[] = incoming === undefined ? [new Uint8Array(await c.req.arrayBuffer())] : [];
  if (incoming !== undefined) {
    // The body comes from the socket's stream: one of unknown length is cut off at the limit.
    await new Promise<void>((resolve, reject) => {
      let size = 0;
      incoming.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size <= maxBytes) chunks.push(chunk);
        else reject(tooLarge());
      });
      incoming.once('end', resolve);
      // Node reports to this listener alone that the client went away.
      incoming.once('error', () => reject(invalid('body: the connection was closed before its end')));
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
