// A tree grown leaf by leaf, with its nodes stored as in the log.
import { MerkleTree } from 'merkletreejs';
import { keccak256 } from '../../src/crypto/keccak.ts';
import {
  type Accumulator,
  appendLeaf,
  EMPTY_TREE,
  HASH_BYTES,
  leafHash,
  type NodeRef,
} from '../../src/crypto/merkle.ts';

export interface GrownTree {
  readonly tree: Accumulator;
  readonly leaves: readonly Uint8Array[];
  /** The nodes that each append stored, by event id. */
  readonly stored: ReadonlyMap<number, Uint8Array>;
  /** Reads stored nodes like the log, and fails for a node that was never stored. */
  readonly read: (refs: readonly NodeRef[]) => Promise<readonly Uint8Array[]>;
}

/** Returns the line of event `eventId`: short, canonical and unique. */
export function lineOf(eventId: number): Uint8Array {
  return new TextEncoder().encode(`{"eventId":${eventId}}`);
}

export function grow(size: number, line = lineOf): GrownTree {
  const stored = new Map<number, Uint8Array>();
  const leaves = Array.from({ length: size }, (_, i) => leafHash(line(i + 1)));
  let tree = EMPTY_TREE;
  for (const leaf of leaves) {
    const appended = appendLeaf(tree, leaf);
    tree = appended.tree;
    stored.set(tree.size, appended.nodes);
  }
  return { tree, leaves, stored, read: async (refs) => refs.map((ref) => nodeAt(stored, ref)) };
}

/** Returns the tree over the same leaves by an independent implementation. */
export function referenceTree(leaves: readonly Uint8Array[]): MerkleTree {
  const hash = (data: Buffer) => Buffer.from(keccak256(data));
  const buffers = leaves.map((leaf) => Buffer.from(leaf));
  return new MerkleTree(buffers, hash, { sortPairs: true, hashLeaves: false });
}

function nodeAt(stored: ReadonlyMap<number, Uint8Array>, { eventId, level }: NodeRef): Uint8Array {
  const node = stored.get(eventId)?.slice(level * HASH_BYTES, (level + 1) * HASH_BYTES);
  if (node?.length !== HASH_BYTES) throw new Error(`no node of level ${level} at event ${eventId}`);
  return node;
}
