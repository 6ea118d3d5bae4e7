// Ed25519 public keys as JSON Web Keys (RFC 8037), and their thumbprints (RFC 7638).
import { sha256 } from '@noble/hashes/sha2.js';
import { base64urlnopad } from '@scure/base';

export interface Jwk {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  /** The 32-byte public key in base64url. */
  readonly x: string;
}

export function toJwk(publicKey: Uint8Array): Jwk {
  return { kty: 'OKP', crv: 'Ed25519', x: base64urlnopad.encode(publicKey) };
}

/** Returns the SHA-256 of the key's required members in lexicographic order, as 43 base64url characters (RFC 8037, appendix A.3). */
export function thumbprintOf(publicKey: Uint8Array): string {
  const { crv, kty, x } = toJwk(publicKey);
  return base64urlnopad.encode(sha256(new TextEncoder().encode(JSON.stringify({ crv, kty, x }))));
}
