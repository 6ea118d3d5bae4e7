import { hash } from 'node:crypto';
import { expect, it } from 'vitest';
import { BodyCache } from '../../src/http/body-cache.ts';
import { WholePage } from '../../src/page/chamber-pages.ts';

it('holds no more bytes for a body than the body has', async () => {
  const bodies = new BodyCache(1_000);
  for (const text of ['short', 'ü'.repeat(100)]) {
    const body = await bodies.body([text], () => text);
    expect(body.toString()).toBe(text);
    expect(body.buffer.byteLength).toBe(body.length);
  }
});

it('tags a body with the hash of its bytes', async () => {
  const bodies = new BodyCache(1_000);
  const etag = `W/"${hash('sha256', 'text', 'base64url')}"`;
  const first = await bodies.tagged(['a'], () => 'text');
  expect(first).toEqual({ body: Buffer.from('text'), etag });
  expect(await bodies.tagged(['a'], () => 'other')).toEqual(first);
});

it('holds no more bytes for a page, compressed or not, than it has', async () => {
  const page = new WholePage('<p>short</p>');
  for (const bytes of [page.bytes, await page.gzipped()]) expect(bytes.buffer.byteLength).toBe(bytes.length);
});
