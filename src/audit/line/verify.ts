// Fast verifiers, checked by @noble/ed25519: it decides what they reject, and a random sample of what they accept.
import { isSignedBy, type VerifyingKey } from '../../crypto/verify.ts';

/** Must decide as isSignedBy does. */
export type Verify = (key: VerifyingKey, message: Uint8Array, signature: Uint8Array) => boolean | Promise<boolean>;

/** Accepts only what isSignedBy accepts; it may reject more, also by rejecting its promise. */
export type FastVerify = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => Promise<boolean>;

const SAMPLE = 0.01;

export function checkedVerify(fast: FastVerify): Verify {
  return async (key, message, signature) => {
    const isAccepted = await fast(key.bytes, message, signature).catch(() => false);
    return (isAccepted && Math.random() >= SAMPLE) || isSignedBy(key, message, signature);
  };
}

/** WebCrypto's Ed25519. Browsers lack it in pages that came over http from another machine. */
export function createWebVerify(): FastVerify {
  const keys = new WeakMap<Uint8Array, ReturnType<typeof importKey>>();
  return async (publicKey, message, signature) => {
    const key = keys.get(publicKey) ?? importKey(publicKey);
    keys.set(publicKey, key);
    return await crypto.subtle.verify('Ed25519', await key, new Uint8Array(signature), new Uint8Array(message));
  };
}

// WebCrypto's types exclude shared memory, hence the copies.
function importKey(publicKey: Uint8Array) {
  return crypto.subtle.importKey('raw', new Uint8Array(publicKey), 'Ed25519', false, ['verify']);
}
