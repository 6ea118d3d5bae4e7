import { hash } from 'node:crypto';
import { expect, it } from 'vitest';
import { ResponseCache, SharedBody } from '../../src/html/response-cache.ts';
import { ENCODINGS } from '../../src/vocabulary/accept.ts';

it('keeps no more bytes for a body, compressed or not, than it has', async () => {
  for (const text of ['short', 'ü'.repeat(100)]) {
    const body = new SharedBody(text);
    expect(body.bytes.toString()).toBe(text);
    for (const bytes of [body.bytes, ...(await Promise.all(ENCODINGS.map((each) => body.encoded(each))))]) {
      expect(bytes.buffer.byteLength).toBe(bytes.length);
    }
  }
});

it('makes and compresses a body once for all its readers', async () => {
  const responses = new ResponseCache(1_000);
  const first = await responses.body(['a'], () => 'text');
  const again = await responses.body(['a'], () => 'other');
  expect(again.bytes.toString()).toBe('text');
  expect(again.encoded('gzip')).toBe(first.encoded('gzip'));
});

it('tags a body with the hash of its bytes', () => {
  expect(new SharedBody('text').etag).toBe(`W/"${hash('sha256', 'text', 'base64url')}"`);
});
