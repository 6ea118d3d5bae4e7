// Documents with an ETag are compressed once, history while it is sent, other responses not at all.
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { SharedBody } from '../../src/html/response-cache.ts';
import { compressHistory, respondDocument } from '../../src/http/compression.ts';
import { atEnd } from '../kit/temporary.ts';

const DOCUMENT = JSON.stringify({ text: 'document '.repeat(1_000) });
const LINES = `${JSON.stringify({ eventId: 1, text: 'line '.repeat(20_000) })}\n`.repeat(20);

/** Makes an app with some of the service's routes, and counts the history pages read. */
function makeApp() {
  const app = new Hono<{ Bindings: Partial<HttpBindings> }>();
  compressHistory(app);
  const history = { pages: 0, isCancelled: false };
  const body = new SharedBody(DOCUMENT);
  app.get('/openapi.json', (c) => respondDocument(c, { body, headers: { 'Content-Type': 'application/json' } }));
  app.get('/chambers/:id', (c) => c.json({ chamberId: 1 }));
  app.get('/events', (c) => {
    if (c.req.query('live') !== undefined)
      return new Response('data: 1\n\n', { headers: { 'Content-Type': 'text/event-stream; charset=utf-8' } });
    const pages = LINES.split(/(?<=\n)/);
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const page = pages[history.pages++];
        if (page === undefined) controller.close();
        else controller.enqueue(Buffer.from(page));
      },
      cancel: () => {
        history.isCancelled = true;
      },
    });
    return new Response(body, { headers: { 'Content-Type': 'application/x-ndjson; charset=utf-8' } });
  });
  const read = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const response = await app.request(path, { method, headers });
    return { response, bytes: Buffer.from(await response.clone().arrayBuffer()) };
  };
  return { app, history, read };
}

describe('a document', () => {
  it.each([
    ['br', 'gzip, deflate, br', (bytes: Buffer) => brotliDecompressSync(bytes)],
    ['gzip', 'GZIP;q=0.5', (bytes: Buffer) => gunzipSync(bytes)],
    ['gzip', 'br;q=0, gzip', (bytes: Buffer) => gunzipSync(bytes)],
    [null, '', (bytes: Buffer) => bytes],
    [null, 'identity, *', (bytes: Buffer) => bytes],
    [null, 'gzip;q=0.0', (bytes: Buffer) => bytes],
  ])('a document has the encoding %s for %j', async (encoding, accepted, decode) => {
    const { response, bytes } = await makeApp().read('/openapi.json', { 'accept-encoding': accepted });
    expect([response.headers.get('content-encoding'), response.headers.get('vary')]).toEqual([
      encoding,
      'Accept-Encoding',
    ]);
    expect(decode(bytes).toString()).toBe(DOCUMENT);
  });

  it('a document is not sent again to a client that has its ETag', async () => {
    const { read } = makeApp();
    const etag = (await read('/openapi.json')).response.headers.get('etag') ?? '';
    const known = await read('/openapi.json', { 'if-none-match': `"x", ${etag}`, 'accept-encoding': 'br' });
    expect([known.response.status, known.bytes.length, known.response.headers.get('etag')]).toEqual([304, 0, etag]);
    expect((await read('/openapi.json', { 'if-none-match': '"x"' })).response.status).toBe(200);
  });
});

describe('history', () => {
  it('history is compressed for clients that accept gzip, and has the same content', async () => {
    const { read } = makeApp();
    const { response, bytes } = await read('/events', { 'accept-encoding': 'br, gzip' });
    expect([response.headers.get('content-encoding'), response.headers.get('vary')]).toEqual([
      'gzip',
      'Accept-Encoding',
    ]);
    expect(gunzipSync(bytes).toString()).toBe(LINES);
  });

  it('history is sent as stored to other clients', async () => {
    const { response, bytes } = await makeApp().read('/events', { 'accept-encoding': 'br' });
    expect([response.headers.get('content-encoding'), bytes.toString()]).toEqual([null, LINES]);
  });

  it('history is read only as fast as the client reads, and no longer once the client has disconnected', async () => {
    const { app, history } = makeApp();
    const response = await app.request('/events', { headers: { 'accept-encoding': 'gzip' } });
    const reader = response.body?.getReader();
    atEnd(() => reader?.cancel());
    await reader?.read();
    expect(history.pages).toBeLessThan(20);
    await reader?.cancel();
    await expect.poll(() => history.isCancelled).toBe(true);
    expect(history.pages).toBeLessThan(20);
  });
});

it('streams, views and HEAD are not compressed', async () => {
  const { read } = makeApp();
  const headers = { 'accept-encoding': 'gzip' };
  for (const [path, method] of [
    ['/events?live', 'GET'],
    ['/chambers/1', 'GET'],
    ['/events', 'HEAD'],
  ] as const) {
    expect((await read(path, headers, method)).response.headers.get('content-encoding')).toBeNull();
  }
});
