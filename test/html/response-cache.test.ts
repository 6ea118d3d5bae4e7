import { hash } from 'node:crypto';
import { expect, it } from 'vitest';
import { type OpenCache, ResponseCache, SharedBody } from '../../src/html/response-cache.ts';
import { ENCODINGS } from '../../src/vocabulary/accept.ts';

it('a cached body, compressed or not, occupies no more memory than its bytes', async () => {
  for (const text of ['short', 'ü'.repeat(100)]) {
    const body = new SharedBody(text);
    expect(body.bytes.toString()).toBe(text);
    for (const bytes of [body.bytes, ...(await Promise.all(ENCODINGS.map((each) => body.encoded(each))))]) {
      expect(bytes.buffer.byteLength).toBe(bytes.length);
    }
  }
});

it('the cache builds and compresses a body once for all readers', async () => {
  const responses = new ResponseCache(1_000);
  const first = await responses.open().body(['a'], () => 'text');
  const again = await responses.open().body(['a'], () => 'other');
  expect(again.bytes.toString()).toBe('text');
  expect(again.encoded('gzip')).toBe(first.encoded('gzip'));
});

it('an emptied cache keeps no body that was read before, finished or not', async () => {
  const responses = new ResponseCache(1_000);
  const bodyOf = async (cache: OpenCache, text: string) => (await cache.body(['a'], () => text)).bytes.toString();
  const { promise, resolve } = Promise.withResolvers<string>();
  const [early, slow] = [responses.open(), responses.open().body(['b'], () => promise)];
  expect(await bodyOf(responses.open(), 'secret')).toBe('secret');
  responses.empty();
  expect(await bodyOf(early, 'secret')).toBe('secret');
  resolve('secret');
  expect((await slow).bytes.toString()).toBe('secret');
  expect(await bodyOf(responses.open(), '[withheld]')).toBe('[withheld]');
  expect((await responses.open().body(['b'], () => '[withheld]')).bytes.toString()).toBe('[withheld]');
});

it('the ETag of a body is the hash of its bytes', () => {
  expect(new SharedBody('text').etag).toBe(`W/"${hash('sha256', 'text', 'base64url')}"`);
});
