// Computes the leaf of a line. A stub states its original's leaf, which the check `withheld` judges.
import { keccak_256 } from '@noble/hashes/sha3.js';
import { leafHash } from '../../crypto/merkle.ts';
import { fromHex, toHex } from '../../vocabulary/values.ts';
import type { Withheld } from '../../vocabulary/withheld.ts';

const SAMPLE = 0.01;

/** `event` is absent if the line is not an event. Recomputes a random sample of the leaves with @noble/hashes. */
export function leafOf(line: Uint8Array, event?: { readonly withheld?: Withheld }): Uint8Array {
  if (event?.withheld !== undefined) return fromHex(event.withheld.leaf);
  const leaf = leafHash(line);
  if (Math.random() >= SAMPLE) return leaf;
  const second = keccak_256(keccak_256(line));
  if (toHex(second) !== toHex(leaf))
    throw new Error(`@noble/hashes computes the leaf ${toHex(second)}, not ${toHex(leaf)}`);
  return leaf;
}
