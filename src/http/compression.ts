// Compresses responses for clients that accept it: documents once for all readers, history while it is sent. Streams and moves are
// never compressed.
import { pipeline, Readable } from 'node:stream';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { createGzip } from 'node:zlib';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono, MiddlewareHandler } from 'hono';
import type { SharedBody } from '../html/response-cache.ts';
import { acceptedEncoding, type Encoding } from '../vocabulary/accept.ts';

const HISTORY = ['/events', '/chambers/:id/events', '/agents/:did/events', '/chambers/:id/transcript'];
/** Other responses on these paths are short, or streams. */
const STREAMED_TYPES = /^(?:text\/markdown|application\/x-ndjson);/;

/** Must be registered before the routes of the same paths. */
export function compressHistory(app: Hono<{ Bindings: Partial<HttpBindings> }>): void {
  for (const path of HISTORY) app.get(path, compressStream);
}

interface Document {
  readonly body: SharedBody;
  readonly headers: Readonly<Record<string, string>>;
  /** Default: all encodings. */
  readonly encodings?: readonly Encoding[];
}

/** Responds with the body and its ETag: 304 if the client has it already, compressed if the client accepts it. */
export async function respondDocument(c: Context, { body, headers, encodings }: Document): Promise<Response> {
  const sent = new Headers({ ...headers, ETag: body.etag });
  sent.append('Vary', 'Accept-Encoding');
  if (namesTag(c.req.header('if-none-match'), body.etag)) return new Response(null, { status: 304, headers: sent });
  const encoding = acceptedEncoding(c.req.header('accept-encoding'), encodings);
  if (encoding === undefined) return new Response(body.bytes, { headers: sent });
  sent.set('Content-Encoding', encoding);
  return new Response(await body.encoded(encoding), { headers: sent });
}

/** Whether an If-None-Match header names the tag, weak or strong (RFC 9110, 13.1.2). Our tags contain no comma. */
function namesTag(header: string | undefined, etag: string): boolean {
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  return header?.split(',').some((item) => item.trim() === '*' || opaque(item) === opaque(etag)) ?? false;
}

/** The fastest level, because each compressed response is sent only once, and Node has few threads for compression. */
const LEVEL = 1;

const compressStream: MiddlewareHandler = async (c, next) => {
  await next();
  const { body, headers } = c.res;
  if (!STREAMED_TYPES.test(headers.get('content-type') ?? '')) return;
  headers.append('Vary', 'Accept-Encoding');
  if (body === null || c.req.method === 'HEAD') return;
  if (acceptedEncoding(c.req.header('accept-encoding'), ['gzip']) === undefined) return;
  headers.set('Content-Encoding', 'gzip');
  const { status } = c.res;
  c.res = new Response(gzip(body), { status, headers });
};

/** Reads the body only as fast as the result is read. When either ends or fails, so does the other. */
function gzip(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const compressed = createGzip({ level: LEVEL });
  // Node and the DOM declare the same stream with different types.
  pipeline(Readable.fromWeb(body as NodeReadableStream<Uint8Array>), compressed, () => {});
  return Readable.toWeb(compressed) as ReadableStream<Uint8Array>;
}
