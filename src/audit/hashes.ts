// The hashes of the log format, by @noble/hashes: the service uses another implementation.
import { keccak_256 } from '@noble/hashes/sha3.js';

/** The leaf of a line in the Merkle tree, and `prev` of the next one: keccak256 twice. */
export function leafOf(line: Uint8Array): Uint8Array {
  return keccak_256(keccak_256(line));
}
