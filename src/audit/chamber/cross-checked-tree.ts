// Cross-checks the accumulator's root of the moves with merkletreejs. The tree has the shape of RFC 9162: a block whose size is a
// power of two is a complete subtree, so the tree over the block roots has the root of all moves. Only block roots stay in memory.
import { Buffer } from 'node:buffer';
import { MerkleTree } from 'merkletreejs';
import { keccak256 } from '../../crypto/keccak.ts';
import { type Hex, toHex } from '../../vocabulary/values.ts';
import { MoveAccumulator, type MoveTree } from './move-tree.ts';

/** `root` throws an Error if the two implementations differ, which no input can cause. */
export class CrossCheckedTree implements MoveTree {
  readonly #accumulator = new MoveAccumulator();
  readonly #second = new MerkleTreeJs();

  get size(): number {
    return this.#accumulator.size;
  }

  push(leaf: Uint8Array): void {
    this.#accumulator.push(leaf);
    this.#second.push(leaf);
  }

  root(): Hex | null {
    const [root, second] = [this.#accumulator.root(), this.#second.root()];
    if (root !== second)
      throw new Error(`merkletreejs computes the root ${second} over ${this.size} moves, not ${root}`);
    return root;
  }
}

/** merkletreejs takes about 200 bytes per leaf. */
const BLOCK_LEAVES = 1_024;

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

/** merkletreejs needs Buffers. The root is copied because a small Buffer retains Node's 64 KiB pool. */
function rootOf(nodes: readonly Uint8Array[]): Uint8Array {
  const leaves = nodes.map((node) => Buffer.from(node));
  const hash = (data: Buffer) => Buffer.from(keccak256(data));
  return Uint8Array.from(new MerkleTree(leaves, hash, { sortPairs: true, hashLeaves: false }).getRoot());
}
