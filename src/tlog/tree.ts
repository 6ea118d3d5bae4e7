// The Merkle tree over the whole log: RFC 6962, section 2.1, with SHA-256. It has the shape of the chambers' trees but uses different
// hashes and does not sort children.
import { sha256 } from '@noble/hashes/sha2.js';
import { HASH_BYTES } from '../crypto/merkle.ts';

export { HASH_BYTES };

/** SHA-256 with 32-byte digests. A publisher passes a faster implementation than the default. */
export type Sha256 = (data: Uint8Array) => Uint8Array;

const LEAF_PREFIX = 0x00;
const NODE_PREFIX = 0x01;

export const EMPTY_ROOT: Uint8Array = sha256(new Uint8Array());

export interface TreeHash {
  /** Hashes an entry of the log: the 32-byte leaf of a line. */
  readonly hashLeaf: (data: Uint8Array) => Uint8Array;
  readonly hashNodes: (left: Uint8Array, right: Uint8Array) => Uint8Array;
}

export function treeHash(hash: Sha256): TreeHash {
  // The buffers can be reused, because filling and hashing are synchronous.
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
