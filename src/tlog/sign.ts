// Ed25519 signatures (RFC 8032) over notes.
import { getPublicKey, hashes, sign } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import type { Sign } from './note.ts';

hashes.sha512 = sha512;

/** The seed has 32 bytes. */
export function signWith(seed: Uint8Array): Sign {
  return (message) => sign(message, seed);
}

export function publicKeyOf(seed: Uint8Array): Uint8Array {
  return getPublicKey(seed);
}
