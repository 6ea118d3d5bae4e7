// This file stands for `node:crypto` and for `hash-wasm` in bundles for the browser.
import { sha256 } from '@noble/hashes/sha2.js';
import { base64 } from '@scure/base';

/** Takes the arguments with which content-digest.ts calls it. */
export function hash(_algorithm: 'sha256', data: Uint8Array, _encoding: 'base64'): string {
  return base64.encode(sha256(data));
}

/** The page's Content-Security-Policy allows no WebAssembly: keccak.ts then computes in plain JavaScript. */
export function createKeccak(): Promise<never> {
  return Promise.reject(new Error('WebAssembly is not used here'));
}
