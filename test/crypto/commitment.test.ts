import fc from 'fast-check';
import { encodeAbiParameters, parseAbiParameters } from 'viem';
import { describe, expect, it } from 'vitest';
import fixture from '../../fixtures/vectors/commitment.json' with { type: 'json' };
import { commitmentHash, encodeOpening } from '../../src/crypto/commitment.ts';
import { type Hex, toHex } from '../../src/vocabulary/values.ts';

const { vectors } = fixture;

describe('a commitment', () => {
  it.each(vectors)('the commitment of $comment has the expected hash', ({ commitment, salt, ...opening }) => {
    expect(commitmentHash({ ...opening, salt: salt as Hex })).toBe(commitment);
  });

  it('the encoding of a commitment equals viem’s', () => {
    const parameters = parseAbiParameters('uint256, string, (string ideaId, uint256 bps)[], bytes');
    const text = fc.string({ unit: 'grapheme', maxLength: 70 });
    const allocations = fc.array(fc.record({ ideaId: text, bps: fc.nat() }), { maxLength: 5 });
    const salt = fc.uint8Array({ maxLength: 70 }).map(toHex);
    fc.assert(
      fc.property(fc.record({ chamberId: fc.maxSafeNat(), did: text, allocations, salt }), (opening) => {
        const tuples = opening.allocations.map(({ ideaId, bps }) => ({ ideaId, bps: BigInt(bps) }));
        expect(encodeOpening(opening)).toBe(
          encodeAbiParameters(parameters, [BigInt(opening.chamberId), opening.did, tuples, opening.salt]),
        );
      }),
    );
  });

  it('all openings of the fixture have different commitments', () => {
    expect(new Set(vectors.map(({ commitment }) => commitment)).size).toBe(vectors.length);
  });
});
