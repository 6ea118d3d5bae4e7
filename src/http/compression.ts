// Compresses responses for clients that accept it. Documents are cached compressed, by their ETag; history is compressed as it is sent.
// Streams and moves never are.
import { pipeline, Readable } from 'node:stream';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { promisify } from 'node:util';
import { brotliCompress, createGzip, gzip } from 'node:zlib';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono, MiddlewareHandler } from 'hono';
import { LRUCache } from 'lru-cache';
import { acceptedEncoding, type Encoding } from '../vocabulary/accept.ts';

const DOCUMENTS = ['/openapi.json', '/schemas/events.json', '/docs', '/agent-guide', '/llms.txt', '/SKILL.md'];
/** The outcome is of one chamber, and small: it takes no room from the documents, and is not worth Brotli's time. */
const OUTCOME = '/chambers/:id/outcome';
const HISTORY = ['/events', '/chambers/:id/events', '/agents/:did/events', '/chambers/:id/transcript'];
/** Everything else is short, or a stream. */
const STREAMED_TYPES = /^(?:text\/markdown|application\/x-ndjson);/;

/** Must be registered before the routes of the same paths. */
export function compressionRoutes(app: Hono<{ Bindings: Partial<HttpBindings> }>): void {
  const document = documents();
  for (const path of DOCUMENTS) app.get(path, document);
  app.get(OUTCOME, documents(['gzip']));
  for (const path of HISTORY) app.get(path, streamed);
}

const compress = { br: promisify(brotliCompress), gzip: promisify(gzip) };
/** Above the number of documents, of which most have one for each base URL. */
const DOCUMENTS_KEPT_MAX = 32;
/** The route gives a document its ETag, which stands for its text. */
function documents(encodings?: readonly Encoding[]): MiddlewareHandler {
  /** The bodies by ETag and encoding. */
  const kept = new LRUCache<string, Promise<Buffer>>({ max: DOCUMENTS_KEPT_MAX });
  return async (c, next) => {
    await next();
    const { headers, ok } = c.res;
    const etag = headers.get('etag');
    if (!ok || etag === null) return;
    headers.append('Vary', 'Accept-Encoding');
    if (namesTag(c.req.header('if-none-match'), etag)) {
      replace(c, new Response(null, { status: 304, headers }));
      return;
    }
    const encoding = acceptedEncoding(c.req.header('accept-encoding'), encodings);
    if (encoding === undefined) return;
    headers.set('Content-Encoding', encoding);
    const key = `${encoding} ${etag}`;
    const body = kept.get(key) ?? c.res.arrayBuffer().then((bytes) => compress[encoding](bytes));
    kept.set(key, body);
    replace(c, new Response(await body, { headers }));
  };
}

/** Whether an If-None-Match header names the tag, weak or strong (RFC 9110, 13.1.2). Tags of ours hold no comma. */
function namesTag(header: string | undefined, etag: string): boolean {
  const opaque = (tag: string) => tag.trim().replace(/^W\//, '');
  return header?.split(',').some((item) => item.trim() === '*' || opaque(item) === opaque(etag)) ?? false;
}

/** Hono would read the body of the response before, to merge the two. */
function replace(c: Context, response: Response): void {
  c.res = undefined;
  c.res = response;
}

/** The fastest: history is sent once, and few threads compress. */
const LEVEL = 1;

const streamed: MiddlewareHandler = async (c, next) => {
  await next();
  const { body, headers } = c.res;
  if (!STREAMED_TYPES.test(headers.get('content-type') ?? '')) return;
  headers.append('Vary', 'Accept-Encoding');
  if (body === null || c.req.method === 'HEAD') return;
  if (acceptedEncoding(c.req.header('accept-encoding'), ['gzip']) === undefined) return;
  headers.set('Content-Encoding', 'gzip');
  const { status } = c.res;
  c.res = new Response(gzipped(body), { status, headers });
};

/** Reads the body only as fast as the result is read. When either ends or fails, so does the other. */
function gzipped(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const compressed = createGzip({ level: LEVEL });
  // Node and the DOM declare the same stream with different types.
  pipeline(Readable.fromWeb(body as NodeReadableStream<Uint8Array>), compressed, () => {});
  return Readable.toWeb(compressed) as ReadableStream<Uint8Array>;
}
