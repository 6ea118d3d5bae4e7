// Replaces `node:crypto` and `hash-wasm` in bundles for the browser.
import { sha256 } from '@noble/hashes/sha2.js';
import { base64 } from '@scure/base';

/** Supports the call of content-digest.ts. */
export function hash(_algorithm: 'sha256', data: Uint8Array, _encoding: 'base64'): string {
  return base64.encode(sha256(data));
}

/** The page's Content-Security-Policy allows no WebAssembly: keccak.ts then computes in plain JavaScript. */
export function createKeccak(): Promise<never> {
  return Promise.reject(new Error('WebAssembly is not used here'));
}
