// The Merkle tree over a chamber's moves.
import { type Accumulator, appendLeaf, EMPTY_TREE, rootOf } from '../../crypto/merkle.ts';
import { type Hex, toHex } from '../../vocabulary/values.ts';

export interface MoveTree {
  readonly size: number;
  push(leaf: Uint8Array): void;
  /** null if there are no leaves. */
  root(): Hex | null;
}

export class MoveAccumulator implements MoveTree {
  #tree: Accumulator = EMPTY_TREE;

  get size(): number {
    return this.#tree.size;
  }

  push(leaf: Uint8Array): void {
    this.#tree = appendLeaf(this.#tree, leaf).tree;
  }

  root(): Hex | null {
    return this.size === 0 ? null : toHex(rootOf(this.#tree));
  }
}
