// Ed25519 private keys (RFC 8032) for node:crypto, from their seeds of 32 bytes.
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { base64urlnopad } from '@scure/base';

/** RFC 8410: the bytes before the seed of a private key. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

export function privateKeyOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
}

/** The 32 bytes of the public key. The first key of a process takes @noble/ed25519 some 0.1 s, and this well under 1 ms. */
export function publicKeyOf(seed: Uint8Array): Uint8Array {
  const { x = '' } = createPublicKey(privateKeyOf(seed)).export({ format: 'jwk' });
  return base64urlnopad.decode(x);
}

/** Returns a function that signs on the calling thread. */
export function signWith(seed: Uint8Array): (message: Uint8Array) => Uint8Array {
  const key = privateKeyOf(seed);
  return (message) => new Uint8Array(sign(null, message, key));
}
