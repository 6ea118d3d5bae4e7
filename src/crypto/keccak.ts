// Ethereum's keccak256 for Node and browsers: WebAssembly if available, otherwise plain JavaScript, which is about ten times
// slower.
import { keccak_256 } from '@noble/hashes/sha3.js';
import { createKeccak, type IHasher } from 'hash-wasm';

// Not awaited, so that require() works. Until it is compiled, and if a page's policy or a runtime lacks WebAssembly, plain
// JavaScript computes the same hash.
let hasher: IHasher | undefined;
createKeccak(256).then(
  (compiled) => {
    hasher = compiled;
  },
  () => {},
);

export function keccak256(data: Uint8Array): Uint8Array {
  return hasher === undefined ? keccak_256(data) : hasher.init().update(data).digest('binary');
}
