// The Merkle root of the moves by merkletreejs, in flat memory: the tree has the shape of RFC 9162, so blocks of a power of
// two are subtrees of their own, and the tree over their roots has the root of the whole.
import { keccak_256 } from '@noble/hashes/sha3.js';
import { MerkleTree } from 'merkletreejs';

/** merkletreejs keeps about 200 bytes for a leaf. */
const BLOCK_LEAVES = 16_384;

export class MovesRoot {
  #blockRoots: Uint8Array[] = [];
  #block: Uint8Array[] = [];
  #root: Uint8Array | undefined;

  get size(): number {
    return this.#blockRoots.length * BLOCK_LEAVES + this.#block.length;
  }

  push(leaf: Uint8Array): void {
    this.#root = undefined;
    this.#block.push(leaf);
    if (this.#block.length < BLOCK_LEAVES) return;
    this.#blockRoots.push(rootOf(this.#block));
    this.#block = [];
  }

  /** The root over all leaves so far; undefined without any. */
  root(): Uint8Array | undefined {
    if (this.size === 0) return undefined;
    const open = this.#block.length === 0 ? [] : [rootOf(this.#block)];
    this.#root ??= rootOf([...this.#blockRoots, ...open]);
    return this.#root;
  }
}

function rootOf(nodes: readonly Uint8Array[]): Uint8Array {
  const leaves = nodes.map((node) => Buffer.from(node));
  const hash = (data: Buffer) => Buffer.from(keccak_256(data));
  return new MerkleTree(leaves, hash, { sortPairs: true, hashLeaves: false }).getRoot();
}
