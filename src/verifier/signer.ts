// Signs with the service's keys off the main thread, in libuv's thread pool.
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';

/** Resolves to the 64-byte Ed25519 signature over the message by the key with this 32-byte seed. */
export type Sign = (seed: Uint8Array, message: Uint8Array) => Promise<Uint8Array>;

/** RFC 8410: the bytes before the seed of an Ed25519 private key. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Keeps the key object of each seed: a service has few. */
export function createSigner(): Sign {
  const keys = new Map<Uint8Array, KeyObject>();
  return (seed, message) => {
    let key = keys.get(seed);
    if (key === undefined) {
      key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
      keys.set(seed, key);
    }
    const signingKey = key;
    return new Promise((resolve, reject) => {
      sign(null, message, signingKey, (error, signature) => (error === null ? resolve(signature) : reject(error)));
    });
  };
}
