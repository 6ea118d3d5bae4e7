// keccak256 as Ethereum uses it, for Node and browsers: WebAssembly where it may run, else plain JavaScript, about ten times slower.
import { keccak_256 } from '@noble/hashes/sha3.js';
import { createKeccak } from 'hash-wasm';

// A page's Content-Security-Policy may forbid WebAssembly, and some runtimes lack it: then the promise rejects.
const hasher = await createKeccak(256).catch(() => undefined);

/** The 32-byte keccak256 of the data. */
export function keccak256(data: Uint8Array): Uint8Array {
  return hasher === undefined ? keccak_256(data) : hasher.init().update(data).digest('binary');
}
