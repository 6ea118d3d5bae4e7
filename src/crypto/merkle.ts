// The Merkle tree over a chamber's moves as an append-only accumulator. Appending and computing the root take O(log n). The tree has the
// shape of RFC 9162 (a node without a sibling moves up unchanged) and hashes sorted children with keccak256.
import { keccak256 } from './keccak.ts';

export const HASH_BYTES = 32;

/** An immutable tree, represented by the roots of its largest perfect subtrees. */
export interface Accumulator {
  readonly size: number;
  /** One 32-byte root for each bit set in `size`, largest subtree first. */
  readonly peaks: readonly Uint8Array[];
}

export interface Appended {
  readonly tree: Accumulator;
  /** 32 bytes each: the leaf, then the roots of the perfect subtrees that it completes, bottom up. */
  readonly nodes: Uint8Array;
}

/** Identifies a stored node: the root of the perfect subtree of 2^level leaves whose last leaf is event `eventId`. */
export interface NodeRef {
  readonly eventId: number;
  readonly level: number;
}

export const EMPTY_TREE: Accumulator = { size: 0, peaks: [] };

/** Hashes twice: a leaf's preimage has 32 bytes and a node's 64, so neither can pass for the other. */
export function leafHash(line: Uint8Array): Uint8Array {
  return keccak256(keccak256(line));
}

// One scratch buffer suffices, because it is filled and hashed synchronously.
const pair = new Uint8Array(2 * HASH_BYTES);

/** Hashes two 32-byte children. Only a tree with sorted children may ignore their order. */
export type NodeHash = (left: Uint8Array, right: Uint8Array) => Uint8Array;

/** Hashes two 32-byte nodes; accepts them in either order. */
export function nodeHash(a: Uint8Array, b: Uint8Array): Uint8Array {
  let at = 0;
  while (at < HASH_BYTES - 1 && a[at] === b[at]) at++;
  const isSorted = (a[at] as number) <= (b[at] as number);
  pair.set(isSorted ? a : b, 0);
  pair.set(isSorted ? b : a, HASH_BYTES);
  return keccak256(pair);
}

/** Returns the tree with one more leaf, and the nodes to store. */
export function appendLeaf(tree: Accumulator, leaf: Uint8Array): Appended {
  const peaks = tree.peaks.slice();
  const completed = [leaf];
  let root = leaf;
  // Every trailing 1 bit of the size is a perfect subtree as large as the one just completed.
  for (let size = tree.size; size % 2 === 1; size = (size - 1) / 2) {
    root = nodeHash(peaks.pop() as Uint8Array, root);
    completed.push(root);
  }
  peaks.push(root);
  const nodes = new Uint8Array(completed.length * HASH_BYTES);
  for (let level = 0; level < completed.length; level++) nodes.set(completed[level] as Uint8Array, level * HASH_BYTES);
  return { tree: { size: tree.size + 1, peaks }, nodes };
}

/** Returns the 32-byte root; throws for an empty tree. */
export function rootOf(tree: Accumulator): Uint8Array {
  return foldPeaks(tree.peaks);
}

export function foldPeaks(peaks: readonly Uint8Array[], hashNodes: NodeHash = nodeHash): Uint8Array {
  if (peaks.length === 0) throw new RangeError('a tree without leaves has no root');
  return peaks.reduceRight((right, left) => hashNodes(left, right));
}

/** Returns the peaks of a tree of `size` leaves after `start` others, largest first. */
export function peakRefs(size: number, start = 0): readonly NodeRef[] {
  const refs: NodeRef[] = [];
  let eventId = start + size;
  let rest = size;
  for (let level = 0; rest > 0; level++) {
    if (rest % 2 === 1) {
      refs.unshift({ eventId, level });
      eventId -= 2 ** level;
    }
    rest = Math.floor(rest / 2);
  }
  return refs;
}

/** Rebuilds the tree from the peaks stored at `peakRefs(size)`. */
export function restoreTree(size: number, peaks: readonly Uint8Array[]): Accumulator {
  const expected = peakRefs(size).length;
  const isWhole = peaks.length === expected && peaks.every((peak) => peak.length === HASH_BYTES);
  if (!isWhole) throw new RangeError(`a tree of ${size} leaves has ${expected} peaks of ${HASH_BYTES} bytes`);
  return { size, peaks: [...peaks] };
}
