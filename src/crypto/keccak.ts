// Ethereum's keccak256 for Node and browsers: in WebAssembly if available, otherwise in plain JavaScript, which is about ten times slower.
import { keccak_256 } from '@noble/hashes/sha3.js';
import { createKeccak, type IHasher } from 'hash-wasm';

// Not awaited, because require() can't load a module with top-level await. Plain JavaScript computes the hash until WebAssembly is
// compiled, or always if it is unavailable.
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
