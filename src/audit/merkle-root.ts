// The Merkle root of the moves by merkletreejs, in flat memory. The tree has the shape of RFC 9162, so a block whose size is
// a power of two is a complete subtree, and the tree over the roots of the blocks has the root of the whole.
import { Buffer } from 'node:buffer';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { MerkleTree } from 'merkletreejs';
import { type Hex, toHex } from '../vocabulary/values.ts';

export interface MoveTree {
  readonly size: number;
  push(leaf: Uint8Array): void;
  /** The root over all leaves so far; null without any. */
  root(): Hex | null;
}

/** merkletreejs keeps about 200 bytes for a leaf. */
const BLOCK_LEAVES = 16_384;

export class MerkleTreeJs implements MoveTree {
  #blockRoots: Uint8Array[] = [];
  #block: Uint8Array[] = [];
  #root: Hex | null = null;

  get size(): number {
    return this.#blockRoots.length * BLOCK_LEAVES + this.#block.length;
  }

  push(leaf: Uint8Array): void {
    this.#root = null;
    this.#block.push(leaf);
    if (this.#block.length < BLOCK_LEAVES) return;
    this.#blockRoots.push(rootOf(this.#block));
    this.#block = [];
  }

  root(): Hex | null {
    if (this.size === 0) return null;
    const open = this.#block.length === 0 ? [] : [rootOf(this.#block)];
    this.#root ??= toHex(rootOf([...this.#blockRoots, ...open]));
    return this.#root;
  }
}

/** merkletreejs works on Buffers. */
function rootOf(nodes: readonly Uint8Array[]): Uint8Array {
  const leaves = nodes.map((node) => Buffer.from(node));
  const hash = (data: Buffer) => Buffer.from(keccak_256(data));
  return new MerkleTree(leaves, hash, { sortPairs: true, hashLeaves: false }).getRoot();
}
