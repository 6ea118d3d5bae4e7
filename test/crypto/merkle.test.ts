import { describe, expect, it } from 'vitest';
import vectors from '../../fixtures/vectors/merkle.json' with { type: 'json' };
import { keccak256 } from '../../src/crypto/keccak.ts';
import {
  appendLeaf,
  EMPTY_TREE,
  HASH_BYTES,
  leafHash,
  nodeHash,
  peakRefs,
  restoreTree,
  rootOf,
} from '../../src/crypto/merkle.ts';
import { toHex } from '../../src/vocabulary/values.ts';
import { grow, lineOf, referenceTree } from './growing-tree.ts';

const SIZES = Array.from({ length: 70 }, (_, i) => i + 1);

describe('the root of the fixture', () => {
  it.each(vectors.roots)('the tree of $size leaves has the root of the fixture: $comment', ({ size, root }) => {
    expect(toHex(rootOf(grow(size).tree))).toBe(root);
  });
});

describe('a tree', () => {
  it.each(SIZES)('a tree of %i leaves has the root that merkletreejs computes', (size) => {
    const { tree, leaves } = grow(size);
    expect(tree.size).toBe(size);
    expect(toHex(rootOf(tree))).toBe(toHex(referenceTree(leaves).getRoot()));
  });

  it('a tree is immutable: an append does not change the previous tree', () => {
    const { tree } = grow(7);
    const before = toHex(rootOf(tree));
    appendLeaf(tree, leafHash(lineOf(8)));
    expect(toHex(rootOf(tree))).toBe(before);
    expect(tree.size).toBe(7);
  });

  it('a tree without leaves has no root', () => {
    expect(() => rootOf(EMPTY_TREE)).toThrow(RangeError);
  });
});

describe('a leaf', () => {
  it('a leaf is the double hash of the line', () => {
    expect(toHex(leafHash(lineOf(vectors.leaf.eventId)))).toBe(vectors.leaf.hash);
  });

  it('a leaf differs from a node over the same 64 bytes', () => {
    const [a, b] = [new Uint8Array(HASH_BYTES).fill(1), new Uint8Array(HASH_BYTES).fill(2)];
    expect(toHex(leafHash(Uint8Array.of(...a, ...b)))).not.toBe(toHex(nodeHash(a, b)));
  });
});

describe('a node', () => {
  it('a node is the same in either order of its children', () => {
    const [a, b] = [leafHash(lineOf(1)), leafHash(lineOf(2))];
    expect(toHex(nodeHash(a, b))).toBe(toHex(nodeHash(b, a)));
  });

  it('a node sorts its children by the first differing byte, even if that is the last', () => {
    const small = new Uint8Array(HASH_BYTES);
    const large = small.with(HASH_BYTES - 1, 1);
    expect(toHex(nodeHash(large, small))).toBe(toHex(keccak256(Uint8Array.of(...small, ...large))));
  });

  it('a node may have two equal children', () => {
    const child = leafHash(lineOf(1));
    expect(toHex(nodeHash(child, child))).toBe(toHex(keccak256(Uint8Array.of(...child, ...child))));
  });
});

describe('the stored nodes', () => {
  it('an append stores the leaf and the roots of the perfect subtrees that it completes', () => {
    const { leaves, stored } = grow(8);
    const [l5, l6, l7, l8] = leaves.slice(4) as [Uint8Array, Uint8Array, Uint8Array, Uint8Array];
    const upper = nodeHash(nodeHash(l5, l6), nodeHash(l7, l8));
    const root = nodeHash(rootOf(grow(4).tree), upper);
    expect(toHex(stored.get(7) as Uint8Array)).toBe(toHex(l7));
    expect(toHex(stored.get(8) as Uint8Array)).toBe(
      toHex(Uint8Array.of(...l8, ...nodeHash(l7, l8), ...upper, ...root)),
    );
  });

  it.each(SIZES)('stored nodes restore the tree of %i leaves', async (size) => {
    const { tree, read } = grow(size);
    expect(restoreTree(size, await read(peakRefs(size)))).toEqual(tree);
  });

  it('stored nodes are addressed from large to small subtrees', () => {
    expect(peakRefs(0)).toEqual([]);
    expect(peakRefs(1)).toEqual([{ eventId: 1, level: 0 }]);
    expect(peakRefs(13)).toEqual([
      { eventId: 8, level: 3 },
      { eventId: 12, level: 2 },
      { eventId: 13, level: 0 },
    ]);
  });

  it('stored nodes are addressed beyond 32 bits', () => {
    expect(peakRefs(2 ** 40 + 1)).toEqual([
      { eventId: 2 ** 40, level: 40 },
      { eventId: 2 ** 40 + 1, level: 0 },
    ]);
  });

  it('stored nodes of a different size restore nothing', async () => {
    const { read } = grow(7);
    const peaks = await read(peakRefs(7));
    expect(() => restoreTree(8, peaks)).toThrow(RangeError);
    expect(() => restoreTree(7, peaks.slice(1))).toThrow(RangeError);
    expect(() => restoreTree(1, [new Uint8Array(31)])).toThrow(RangeError);
  });
});
