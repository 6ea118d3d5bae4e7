// Fast verifiers, with @noble/ed25519 behind them: it decides what a fast one does not accept, and a random sample of
// what it accepts.
import { isSignedBy, type VerifyingKey } from '../../crypto/verify.ts';

/** Decides as isSignedBy does. */
export type Verify = (key: VerifyingKey, message: Uint8Array, signature: Uint8Array) => boolean | Promise<boolean>;

/** Accepts what isSignedBy accepts; it may also refuse that, or reject. */
export type FastVerify = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => Promise<boolean>;

const SAMPLE = 0.01;

export function checkedVerify(fast: FastVerify): Verify {
  return async (key, message, signature) => {
    const isAccepted = await fast(key.bytes, message, signature).catch(() => false);
    return (isAccepted && Math.random() >= SAMPLE) || isSignedBy(key, message, signature);
  };
}

/** The browser's own Ed25519, where it has one: in a page that came over http from another machine it is absent. */
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
