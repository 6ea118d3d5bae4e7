// Verification by node:crypto in libuv's thread pool: its answer is the rule (RFC 8032, cofactorless, S < L).
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { Question } from './question.ts';

/** Answers a question by itself, off the calling thread. */
export type NodeVerifier = (question: Question) => void;

/** Keeps the key objects of the `keysMax` public keys used last: making one costs a tenth of a verification. */
export function createNodeVerifier(keysMax: number): NodeVerifier {
  const keys = new Map<string, KeyObject>();

  function keyOf(publicKey: Uint8Array): KeyObject {
    const x = Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.byteLength).toString('base64url');
    const key = keys.get(x) ?? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    keys.delete(x);
    keys.set(x, key);
    if (keys.size > keysMax) dropOldest();
    return key;
  }

  function dropOldest(): void {
    for (const x of keys.keys()) {
      keys.delete(x);
      return;
    }
  }

  return ({ publicKey, message, signature, resolve, reject }) => {
    try {
      verify(null, message, keyOf(publicKey), signature, (error, isValid) => {
        if (error === null) resolve(isValid);
        else reject(error);
      });
    } catch (error) {
      reject(error);
    }
  };
}
