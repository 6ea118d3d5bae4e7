import { describe, expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/content-digest.json' with { type: 'json' };
import { contentDigestOf, digestProblem } from '../../src/crypto/content-digest.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('Content-Digest', () => {
  it('is made with sha-256 alone', () => {
    expect(contentDigestOf(bytes('{"hello": "world"}'))).toBe('sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:');
  });

  it('of an empty body is a digest too', () => {
    expect(contentDigestOf(new Uint8Array())).toBe('sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:');
  });

  it('is made of a view, not of the buffer behind it', () => {
    const view = bytes('xx{"hello": "world"}xx').subarray(2, 20);
    expect(contentDigestOf(view)).toBe(contentDigestOf(bytes('{"hello": "world"}')));
  });

  it.each(vectors.accepted)('is right: $comment', ({ header, body }) => {
    expect(digestProblem(header, contentDigestOf(bytes(body)))).toBeUndefined();
  });

  it('is quoted back in part only', () => {
    expect(digestProblem('x'.repeat(10_000), contentDigestOf(new Uint8Array()))?.length).toBeLessThan(300);
  });

  it.each(vectors.refused)('is rejected: $comment', ({ header, body, mentions }) => {
    expect(digestProblem(header, contentDigestOf(bytes(body)))).toContain(mentions);
  });
});
