// Wraps a fast verifier: @noble/ed25519 rechecks every signature that the verifier rejects, and a random sample of those it accepts.
import { isSignedBy, type VerifyingKey } from '../../crypto/verify.ts';

/** Must return the same result as isSignedBy. */
export type Verify = (key: VerifyingKey, message: Uint8Array, signature: Uint8Array) => boolean | Promise<boolean>;

/** Must accept only signatures that isSignedBy accepts. May reject more of them, or reject its promise. */
export type FastVerify = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => Promise<boolean>;

const SAMPLE = 0.01;

export function checkedVerify(fast: FastVerify): Verify {
  return async (key, message, signature) => {
    const isAccepted = await fast(key.bytes, message, signature).catch(() => false);
    return (isAccepted && Math.random() >= SAMPLE) || isSignedBy(key, message, signature);
  };
}

/** Uses WebCrypto's Ed25519, which browsers provide only in secure contexts. */
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
