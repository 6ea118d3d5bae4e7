// Signs requests as the service requires: RFC 9421 with Ed25519 over method, URL and body digest, each with a nonce.
import { getPublicKey, hashes, sign, utils } from '@noble/ed25519';
import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { base64, base64urlnopad } from '@scure/base';
import { toDid } from '../crypto/did-key.ts';
import { signatureBase } from '../crypto/http-signature.ts';
import { fromHex, type Hex, type Millis, toHex } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';

// Pages without TLS have no WebCrypto, so noble's hash is used.
hashes.sha512 = sha512;

const SEED_BYTES = 32;
const NONCE_BYTES = 16;
const COMPONENTS = ['@method', '@target-uri', 'content-digest'] as const;
const encoder = new TextEncoder();

/** A key that signs without exposing its seed. */
export interface Signer {
  readonly did: string;
  readonly pubkeyHex: Hex;
  sign(message: Uint8Array): Uint8Array;
}

export function randomSeed(): Uint8Array {
  return utils.randomSecretKey();
}

/** Returns the signer for a 32-byte Ed25519 seed (RFC 8032), as bytes or hex. */
export function toSigner(seed: Uint8Array | Hex): Signer {
  if (typeof seed === 'string' && !/^0x[0-9a-fA-F]{64}$/.test(seed)) {
    throw new ClientError('CLIENT_ERR_KEY', 'a seed as text must be 0x and 64 hex digits');
  }
  const bytes = typeof seed === 'string' ? fromHex(seed) : seed.slice();
  if (bytes.length !== SEED_BYTES) throw new ClientError('CLIENT_ERR_KEY', `a seed must be ${SEED_BYTES} bytes`);
  const publicKey = getPublicKey(bytes);
  return { did: toDid(publicKey), pubkeyHex: toHex(publicKey), sign: (message) => sign(message, bytes) };
}

export function newNonce(): string {
  return base64urlnopad.encode(crypto.getRandomValues(new Uint8Array(NONCE_BYTES)));
}

/** Returns the headers of a signed request. `body` is '' if there is none; `now` is the service's time. */
export function signatureHeaders(
  signer: Signer,
  { method, targetUri, body }: { readonly method: string; readonly targetUri: string; readonly body: string },
  now: Millis,
) {
  const nonce = newNonce();
  const created = Math.floor(now / 1000);
  const covered = COMPONENTS.map((component) => `"${component}"`).join(' ');
  const params = `(${covered});created=${created};keyid="${signer.did}";alg="ed25519";nonce="${nonce}"`;
  const contentDigest = `sha-256=:${base64.encode(sha256(encoder.encode(body)))}:`;
  const input = { params, components: COMPONENTS, created, keyid: signer.did };
  const base = signatureBase(input, { method, targetUri, contentDigest });
  return {
    'Content-Digest': contentDigest,
    'Signature-Input': `sig1=${params}`,
    Signature: `sig1=:${base64.encode(signer.sign(encoder.encode(base)))}:`,
  };
}
