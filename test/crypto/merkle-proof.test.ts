import { describe, expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/merkle.json' with { type: 'json' };
import { keccak256 } from '../../src/crypto/keccak.ts';
import { leafHash, type NodeRef, rootOf } from '../../src/crypto/merkle.ts';
import {
  type ConsistencyClaim,
  consistencyProof,
  type InclusionClaim,
  inclusionProof,
  verifyConsistency,
  verifyInclusion,
} from '../../src/crypto/merkle-proof.ts';
import { toHex } from '../../src/vocabulary/values.ts';
import { type GrownTree, grow, lineOf, referenceTree } from './growing-tree.ts';

const MERKLETREEJS_SIZES = Array.from({ length: 70 }, (_, i) => i + 1);
const CONSISTENCY_SIZES = Array.from({ length: 40 }, (_, i) => i + 1);
const ROOTS = [...MERKLETREEJS_SIZES.keys()].map((i) => rootOf(grow(i + 1).tree));

const BAD_RANGES = [
  [0, 1],
  [-1, 1],
  [2, 1],
  [1.5, 2],
  [1, 2.5],
  [Number.NaN, 1],
  [1, Number.POSITIVE_INFINITY],
  [1, 2 ** 53],
] as const;

function rootAt(size: number): Uint8Array {
  return ROOTS[size - 1] as Uint8Array;
}

async function inclusion(grown: GrownTree, eventId: number): Promise<InclusionClaim> {
  const { size } = grown.tree;
  const leaf = grown.leaves[eventId - 1] as Uint8Array;
  return { leaf, eventId, size, proof: await inclusionProof(eventId, size, grown.read), root: rootAt(size) };
}

async function consistency(grown: GrownTree, from: number): Promise<ConsistencyClaim> {
  const to = grown.tree.size;
  const proof = await consistencyProof(from, to, grown.read);
  return { from, to, fromRoot: rootAt(from), toRoot: rootAt(to), proof };
}

describe('inclusion proofs', () => {
  it.each(vectors.inclusion)('an inclusion proof equals the fixture: $comment', async ({ eventId, size, proof }) => {
    expect((await inclusionProof(eventId, size, grow(size).read)).map(toHex)).toEqual(proof);
  });

  it.each(MERKLETREEJS_SIZES)(
    'inclusion proofs of every leaf of %i equal those of merkletreejs, and verify',
    async (size) => {
      const grown = grow(size);
      const reference = referenceTree(grown.leaves);
      for (const [i, leaf] of grown.leaves.entries()) {
        const claim = await inclusion(grown, i + 1);
        expect(claim.proof.map(toHex)).toEqual(reference.getProof(Buffer.from(leaf), i).map(({ data }) => toHex(data)));
        expect(verifyInclusion(claim)).toBe(true);
      }
    },
  );

  it.each([1, 2, 3, 7, 8, 21])(
    'inclusion proofs in a tree of %i leaves are rejected after any single change',
    async (size) => {
      const grown = grow(size);
      for (let eventId = 1; eventId <= size; eventId++) {
        const claim = await inclusion(grown, eventId);
        const otherLeaf = leafHash(lineOf(size + 1));
        const changed = [
          ...changesOf(claim.proof).map((proof) => ({ ...claim, proof })),
          ...bitFlipsOf(claim.root).map((root) => ({ ...claim, root })),
          { ...claim, leaf: otherLeaf },
          { ...claim, leaf: claim.leaf.subarray(1) },
          { ...claim, eventId: size + 1 },
          { ...claim, size: size * 4 },
        ];
        expect(changed.filter(verifyInclusion)).toEqual([]);
      }
    },
  );

  it('an inclusion proof never accepts an inner node as a leaf', async () => {
    const grown = grow(4);
    const [sibling, upper] = await inclusionProof(1, 4, grown.read);
    const leaf = keccak256(Uint8Array.of(...(sibling as Uint8Array), ...(upper as Uint8Array)));
    expect(verifyInclusion({ leaf, eventId: 1, size: 2, proof: [upper as Uint8Array], root: rootAt(4) })).toBe(false);
  });

  it.each([
    ['an empty leaf', { leaf: new Uint8Array(0) }],
    ['a leaf of 31 bytes', { leaf: rootAt(1).subarray(1), root: rootAt(1).subarray(1) }],
    ['a root of 33 bytes', { root: Uint8Array.of(...rootAt(1), 0) }],
    ['a sibling of 31 bytes', { size: 2, root: rootAt(2), proof: [rootAt(1).subarray(1)] }],
  ])('an inclusion proof with %s is rejected', (_title, changes) => {
    const claim = { leaf: rootAt(1), eventId: 1, size: 1, proof: [], root: rootAt(1) };
    expect(verifyInclusion(claim)).toBe(true);
    expect(verifyInclusion({ ...claim, ...changes })).toBe(false);
  });

  it.each(BAD_RANGES)('an inclusion proof of event %d of %d is rejected', (eventId, size) => {
    const claim = { leaf: leafHash(lineOf(1)), eventId, size, proof: [], root: rootAt(1) };
    expect(verifyInclusion(claim)).toBe(false);
    expect(() => inclusionProof(eventId, size, grow(1).read)).toThrow(/^no proof for .* must hold$/);
  });
});

describe('consistency proofs', () => {
  it.each(CONSISTENCY_SIZES)('consistency proofs from every size to %i verify', async (size) => {
    const grown = grow(size);
    for (let from = 1; from <= size; from++) {
      expect(verifyConsistency(await consistency(grown, from))).toBe(true);
    }
  });

  it.each(CONSISTENCY_SIZES)(
    'consistency proofs from every size to %i are rejected after any single change',
    async (size) => {
      const grown = grow(size);
      for (let from = 1; from <= size; from++) {
        const claim = await consistency(grown, from);
        const changed = [
          ...changesOf(claim.proof).map((proof) => ({ ...claim, proof })),
          ...bitFlipsOf(claim.fromRoot).map((fromRoot) => ({ ...claim, fromRoot })),
          ...bitFlipsOf(claim.toRoot).map((toRoot) => ({ ...claim, toRoot })),
          { ...claim, fromRoot: rootAt(from + 1) },
          { ...claim, toRoot: rootAt(size + 1) },
        ];
        expect(changed.filter(verifyConsistency)).toEqual([]);
      }
    },
  );

  it('consistency proofs of a log with a different early event are rejected', async () => {
    const forged = grow(9, (eventId) => lineOf(eventId === 2 ? 99 : eventId));
    const proof = await consistencyProof(5, 9, forged.read);
    const claim = { from: 5, to: 9, fromRoot: rootAt(5), toRoot: rootOf(forged.tree), proof };
    expect(verifyConsistency(claim)).toBe(false);
    expect(verifyConsistency({ ...claim, toRoot: rootAt(9) })).toBe(false);
  });

  it.each([
    ['empty roots', new Uint8Array(0), new Uint8Array(0)],
    ['roots of 31 bytes', rootAt(1).subarray(1), rootAt(1).subarray(1)],
    ['a root of 33 bytes', rootAt(1), Uint8Array.of(...rootAt(1), 0)],
  ])('a consistency proof with %s is rejected', (_title, fromRoot, toRoot) => {
    expect(verifyConsistency({ from: 1, to: 1, fromRoot, toRoot, proof: [] })).toBe(false);
  });

  it.each(BAD_RANGES)('a consistency proof from %d to %d is rejected', (from, to) => {
    expect(verifyConsistency({ from, to, fromRoot: rootAt(1), toRoot: rootAt(1), proof: [] })).toBe(false);
    expect(() => consistencyProof(from, to, grow(1).read)).toThrow(RangeError);
  });
});

describe('making a proof', () => {
  it('making a proof reads O(log n) nodes in one batch', async () => {
    const size = 2 ** 40 - 1;
    const reads: (readonly NodeRef[])[] = [];
    const read = async (refs: readonly NodeRef[]) => {
      reads.push(refs);
      return refs.map(() => leafHash(lineOf(1)));
    };
    await inclusionProof(1, size, read);
    await consistencyProof(2 ** 39 + 1, size, read);
    expect(reads.map((refs) => refs.length <= 2 * 40)).toEqual([true, true]);
  });
});

/** Returns proofs with one bit changed, one node added or removed, or two nodes swapped. */
function changesOf(proof: readonly Uint8Array[]): readonly (readonly Uint8Array[])[] {
  const extra = leafHash(lineOf(1000));
  return [
    [...proof, extra],
    [extra, ...proof],
    ...proof.map((_, i) => proof.toSpliced(i, 1)),
    ...proof.map((node, i) => proof.toSpliced(i, 0, node)),
    ...proof.map((node, i) => proof.with(i, node.subarray(1))),
    ...proof.flatMap((node, i) => bitFlipsOf(node).map((flipped) => proof.with(i, flipped))),
    ...proof.slice(1).map((node, i) => proof.with(i, node).with(i + 1, proof[i] as Uint8Array)),
  ];
}

/** Flips one bit in the first, a middle and the last byte. */
function bitFlipsOf(hash: Uint8Array): readonly Uint8Array[] {
  return [0, 13, 31].map((at) => hash.with(at, (hash[at] as number) ^ (1 << (at % 8))));
}
