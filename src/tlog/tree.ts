// The Merkle tree over the whole log: RFC 6962, section 2.1, with SHA-256. Its shape is that of the chambers' trees, its hashes and
// the order of children are not.
import { sha256 } from '@noble/hashes/sha2.js';
import { HASH_BYTES } from '../crypto/merkle.ts';

export { HASH_BYTES };

/** SHA-256 of 32 bytes; a faster one than the default may be passed where many leaves are hashed. */
export type Sha256 = (data: Uint8Array) => Uint8Array;

const LEAF_PREFIX = 0x00;
const NODE_PREFIX = 0x01;

/** The root of a tree without leaves. */
export const EMPTY_ROOT: Uint8Array = sha256(new Uint8Array());

export interface TreeHash {
  /** The leaf hash of an entry of the log, whose data are 32 bytes: the leaf of its line. */
  readonly hashLeaf: (data: Uint8Array) => Uint8Array;
  readonly hashNodes: (left: Uint8Array, right: Uint8Array) => Uint8Array;
}

export function treeHash(hash: Sha256): TreeHash {
  // One buffer for each is enough: it is filled and hashed without suspending between.
  const leaf = new Uint8Array(1 + HASH_BYTES);
  leaf[0] = LEAF_PREFIX;
  const node = new Uint8Array(1 + 2 * HASH_BYTES);
  node[0] = NODE_PREFIX;
  return {
    hashLeaf: (data) => {
      if (data.length !== HASH_BYTES) throw new RangeError(`an entry has ${HASH_BYTES} bytes`);
      leaf.set(data, 1);
      return hash(leaf);
    },
    hashNodes: (left, right) => {
      node.set(left, 1);
      node.set(right, 1 + HASH_BYTES);
      return hash(node);
    },
  };
}

export const TREE: TreeHash = treeHash(sha256);
