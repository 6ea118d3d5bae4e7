import { describe, expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/content-digest.json' with { type: 'json' };
import { contentDigestOf, digestProblem } from '../../src/crypto/content-digest.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('Content-Digest', () => {
  it('Content-Digest uses only sha-256', () => {
    expect(contentDigestOf(bytes('{"hello": "world"}'))).toBe('sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:');
  });

  it('an empty body has a digest', () => {
    expect(contentDigestOf(new Uint8Array())).toBe('sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:');
  });

  it('the digest of a view covers only the view, not the buffer behind it', () => {
    const view = bytes('xx{"hello": "world"}xx').subarray(2, 20);
    expect(contentDigestOf(view)).toBe(contentDigestOf(bytes('{"hello": "world"}')));
  });

  it.each(vectors.accepted)('a Content-Digest is accepted: $comment', ({ header, body }) => {
    expect(digestProblem(header, contentDigestOf(bytes(body)))).toBeUndefined();
  });

  it('the error quotes only a part of a long Content-Digest', () => {
    expect(digestProblem('x'.repeat(10_000), contentDigestOf(new Uint8Array()))?.length).toBeLessThan(300);
  });

  it.each(vectors.refused)('a Content-Digest is rejected: $comment', ({ header, body, mentions }) => {
    expect(digestProblem(header, contentDigestOf(bytes(body)))).toContain(mentions);
  });
});
