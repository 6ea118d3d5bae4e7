// Verification without libsodium: by node:crypto in libuv's thread pool, and by the rule itself on the calling thread.
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { isSignedBy, toVerifyingKey } from '../crypto/verify.ts';
import type { VerifyJob } from './verify-queue.ts';

/** Keeps the key objects of the `keysMax` public keys used last: making one costs a tenth of a verification. */
export function createNodeVerifier(keysMax: number, settle: (job: VerifyJob, outcome: boolean | Error) => void) {
  const keys = new LRUCache<string, KeyObject>({ max: keysMax });

  return (job: VerifyJob): void => {
    const { publicKey, message, signature } = job;
    try {
      const x = Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.byteLength).toString('base64url');
      const key = keys.get(x) ?? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      keys.set(x, key);
      verify(null, message, key, signature, (error, isValid) => settle(job, error ?? isValid));
    } catch (error) {
      // Later, as every other outcome: settling starts the next job, which may fail in the same way.
      setImmediate(settle, job, error as Error);
    }
  };
}

/** No honest signer makes a signature for the fallback verifier, so few may wait for it. */
const FALLBACK_WAITING_MAX = 32;

/**
 * Applies the rule itself to signatures that a fast verifier rejected for an R of small order; returns false where too
 * many wait. A signature takes about 4 ms of the calling thread. The pause after each leaves that thread to others,
 * however many such signatures arrive.
 */
export function createFallbackVerifier(pauseMillis: number): (job: VerifyJob) => boolean {
  const waiting: VerifyJob[] = [];
  let isPausing = false;

  function verifyNext(): void {
    const job = waiting.shift();
    isPausing = job !== undefined;
    if (job === undefined) return;
    try {
      job.resolve(isSignedBy(toVerifyingKey(job.publicKey), job.message, job.signature));
    } catch (error) {
      job.reject(error as Error);
    }
    setTimeout(verifyNext, pauseMillis);
  }

  return (job) => {
    if (waiting.length === FALLBACK_WAITING_MAX) return false;
    waiting.push(job);
    if (!isPausing) verifyNext();
    return true;
  };
}
