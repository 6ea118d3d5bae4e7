// keccak256 as Ethereum uses it, for Node and browsers: WebAssembly where it may run, else plain JavaScript, about ten times slower.
import { keccak_256 } from '@noble/hashes/sha3.js';
import { createKeccak, type IHasher } from 'hash-wasm';

// The load is not awaited, so that require() works: until it is compiled, and wherever a page's policy forbids WebAssembly or
// a runtime lacks it, plain JavaScript computes the same hash.
let hasher: IHasher | undefined;
createKeccak(256).then(
  (compiled) => {
    hasher = compiled;
  },
  () => {},
);

/** The 32-byte keccak256 of the data. */
export function keccak256(data: Uint8Array): Uint8Array {
  return hasher === undefined ? keccak_256(data) : hasher.init().update(data).digest('binary');
}
