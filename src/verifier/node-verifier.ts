// Verification by node:crypto in libuv's thread pool.
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { Question } from './question.ts';

/** Verifies off the calling thread; rejects the question itself when that fails. */
export type NodeVerifier = (question: Question) => void;

/** Keeps the key objects of the `keysMax` public keys used last: making one costs a tenth of a verification. */
export function createNodeVerifier(
  keysMax: number,
  onAnswer: (question: Question, isValid: boolean) => void,
): NodeVerifier {
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

  return (question) => {
    const { publicKey, message, signature, reject } = question;
    try {
      verify(null, message, keyOf(publicKey), signature, (error, isValid) => {
        if (error === null) onAnswer(question, isValid);
        else reject(error);
      });
    } catch (error) {
      reject(error);
    }
  };
}
