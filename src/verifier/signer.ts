// Signs with the service's keys off the main thread: by libsodium on a verification thread, or by node:crypto in libuv's thread pool.
import { type KeyObject, sign } from 'node:crypto';
import { privateKeyOf } from '../keys/private-key.ts';

/** Resolves to the 64-byte Ed25519 signature over the message by the key with this 32-byte seed. */
export type Sign = (seed: Uint8Array, message: Uint8Array) => Promise<Uint8Array>;

/** One message to sign, and where its signature goes. */
export interface SignJob {
  readonly seed: Uint8Array;
  readonly message: Uint8Array;
  readonly resolve: (signature: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/** Signs by node:crypto. Keeps the key object of each seed: a service has few. */
export function createNodeSigner(): (job: SignJob) => void {
  const keys = new Map<Uint8Array, KeyObject>();
  return ({ seed, message, resolve, reject }) => {
    const key = keys.get(seed) ?? privateKeyOf(seed);
    keys.set(seed, key);
    sign(null, message, key, (error, signature) => (error === null ? resolve(signature) : reject(error)));
  };
}
