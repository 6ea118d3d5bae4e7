// Compresses responses for clients that accept it. Documents are cached compressed, with an ETag; HTML pages and pages of history
// are compressed as they are sent. Streams and moves never are.
import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { promisify } from 'node:util';
import { brotliCompress, createGzip, gzip } from 'node:zlib';
import type { HttpBindings } from '@hono/node-server';
import type { Hono, MiddlewareHandler } from 'hono';
import { LRUCache } from 'lru-cache';

const DOCUMENTS = ['/openapi.json', '/schemas/events.json', '/docs', '/agent-guide', '/llms.txt'];
const PAGES = ['/', '/chambers/:id'];
const HISTORY = ['/events', '/chambers/:id/events', '/agents/:did/events', '/chambers/:id/transcript'];
/** Everything else is short, or a stream. */
const STREAMED_TYPES = /^(?:text\/html|text\/markdown|application\/x-ndjson);/;

/** Must be registered before the routes of the same paths. */
export function compressionRoutes(app: Hono<{ Bindings: Partial<HttpBindings> }>): void {
  for (const path of DOCUMENTS) app.get(path, document);
  for (const path of [...PAGES, ...HISTORY]) app.get(path, streamed);
}

/** Best first. */
const ENCODINGS = ['br', 'gzip'] as const;
type Encoding = (typeof ENCODINGS)[number];

/** The best encoding that an Accept-Encoding header names with a quality above 0 (RFC 9110, 12.5.3); `*` is ignored. */
function encodingOf(header = '', known: readonly Encoding[] = ENCODINGS): Encoding | undefined {
  const items = header.toLowerCase().split(',');
  const accepted = items.filter((item) => !/;\s*q=0(?:\.0*)?\s*$/.test(item)).map((item) => item.split(';')[0]?.trim());
  return known.find((encoding) => accepted.includes(encoding));
}

const compress = { br: promisify(brotliCompress), gzip: promisify(gzip) };
/** Above the number of documents; /agent-guide and /llms.txt have one for each base URL. */
const DOCUMENTS_KEPT_MAX = 32;
/** By ETag and encoding. */
const kept = new LRUCache<string, Promise<Buffer>>({ max: DOCUMENTS_KEPT_MAX });

const document: MiddlewareHandler = async (c, next) => {
  await next();
  const { headers, ok } = c.res;
  if (!ok) return;
  const text = await c.res.text();
  const etag = `W/"${createHash('sha256').update(text).digest('base64url')}"`;
  headers.set('ETag', etag);
  headers.append('Vary', 'Accept-Encoding');
  if (
    c.req
      .header('if-none-match')
      ?.split(/\s*,\s*/)
      .includes(etag)
  ) {
    c.res = new Response(null, { status: 304, headers });
    return;
  }
  const encoding = encodingOf(c.req.header('accept-encoding'));
  if (encoding === undefined) {
    c.res = new Response(text, { headers });
    return;
  }
  headers.set('Content-Encoding', encoding);
  const key = `${encoding} ${etag}`;
  const body = kept.get(key) ?? compress[encoding](text);
  kept.set(key, body);
  c.res = new Response(await body, { headers });
};

/** The fastest: history is sent once, and few threads compress. */
const LEVEL = 1;

const streamed: MiddlewareHandler = async (c, next) => {
  await next();
  const { body, headers } = c.res;
  if (!STREAMED_TYPES.test(headers.get('content-type') ?? '')) return;
  headers.append('Vary', 'Accept-Encoding');
  if (body === null || c.req.method === 'HEAD') return;
  if (encodingOf(c.req.header('accept-encoding'), ['gzip']) === undefined) return;
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
