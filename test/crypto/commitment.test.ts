import { describe, expect, it } from 'vitest';
import fixture from '../../fixtures/vectors/commitment.json' with { type: 'json' };
import { commitmentHash } from '../../src/crypto/commitment.ts';
import type { Hex } from '../../src/vocabulary/values.ts';

const { vectors } = fixture;

describe('a commitment', () => {
  it.each(vectors)('hashes $comment', ({ commitment, salt, ...opening }) => {
    expect(commitmentHash({ ...opening, salt: salt as Hex })).toBe(commitment);
  });

  it('differs between all openings of the fixture', () => {
    expect(new Set(vectors.map(({ commitment }) => commitment)).size).toBe(vectors.length);
  });
});
