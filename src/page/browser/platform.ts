// Replaces `node:crypto` and `hash-wasm` in bundles for the browser.
import { sha256 } from '@noble/hashes/sha2.js';
import { base64 } from '@scure/base';

/** Supports only the call in content-digest.ts. */
export function hash(_algorithm: 'sha256', data: Uint8Array, _encoding: 'base64'): string {
  return base64.encode(sha256(data));
}

/** Rejects, because the page's Content-Security-Policy forbids WebAssembly. keccak.ts then computes in plain JavaScript. */
export function createKeccak(): Promise<never> {
  return Promise.reject(new Error('WebAssembly is not used here'));
}
