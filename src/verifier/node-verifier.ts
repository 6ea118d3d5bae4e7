// Verifies and signs without libsodium: with node:crypto in libuv's thread pool, or with isSignedBy on the calling thread.
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { isSignedBy, toVerifyingKey } from '../crypto/verify.ts';
import { privateKeyOf } from '../keys/private-key.ts';
import type { VerifyJob } from './verify-queue.ts';

/** Caches up to `keysMax` key objects, because creating one costs a tenth of a verification. */
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
      // Deferred: settling starts the next job, which may fail too, so a direct call could recurse without bound.
      setImmediate(settle, job, error as Error);
    }
  };
}

/** Resolves to the 64-byte Ed25519 signature of the message, with the key of the 32-byte seed. */
export type Sign = (seed: Uint8Array, message: Uint8Array) => Promise<Uint8Array>;

export interface SignJob {
  readonly seed: Uint8Array;
  readonly message: Uint8Array;
  readonly resolve: (signature: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/** Caches the key object of each seed. A service has only a few. */
export function createNodeSigner(): (job: SignJob) => void {
  const keys = new Map<Uint8Array, KeyObject>();
  return ({ seed, message, resolve, reject }) => {
    const key = keys.get(seed) ?? privateKeyOf(seed);
    keys.set(seed, key);
    sign(null, message, key, (error, signature) => (error === null ? resolve(signature) : reject(error)));
  };
}

/** Small, because honest signers never need the fallback. */
const FALLBACK_WAITING_MAX = 32;

/**
 * Verifies signatures whose R has small order and that the fast verifier has rejected. The returned function returns false if too many
 * jobs are waiting. Each job takes about 4 ms of the calling thread; the pause after it leaves time for other work.
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
