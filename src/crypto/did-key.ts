// did:key identifiers of Ed25519 keys, and checks for weak keys. Each key has exactly one accepted DID.
import { Point } from '@noble/ed25519';
import { base58 } from '@scure/base';

const PREFIX = 'did:key:z';
/** did:key:z and 47 digits: any 34 bytes that start with 0xed take 47 digits in base58. */
const DID_CHARS = 56;
const ED25519_MULTICODEC = [0xed, 0x01] as const;
const KEY_BYTES = 32;

export function toDid(publicKey: Uint8Array): string {
  if (publicKey.length !== KEY_BYTES) throw new RangeError(`an Ed25519 public key has ${KEY_BYTES} bytes`);
  return PREFIX + base58.encode(Uint8Array.of(...ED25519_MULTICODEC, ...publicKey));
}

/**
 * Returns the public key; undefined unless `did` is exactly what toDid returns (no fragment, no white space, no other key type). The
 * input is untrusted, so its length is checked first.
 */
export function parseDid(did: string): Uint8Array | undefined {
  if (did.length !== DID_CHARS || !did.startsWith(PREFIX)) return undefined;
  const bytes = orUndefined(() => base58.decode(did.slice(PREFIX.length)));
  if (bytes?.length !== ED25519_MULTICODEC.length + KEY_BYTES) return undefined;
  const isEd25519 = ED25519_MULTICODEC.every((byte, i) => bytes[i] === byte);
  return isEd25519 ? bytes.slice(ED25519_MULTICODEC.length) : undefined;
}

/**
 * Returns why a public key is rejected; undefined if it is accepted. Under a key of small order, one constant signature is valid for
 * every message, and verifiers disagree about keys with non-canonical encodings.
 */
export function weaknessOf(publicKey: Uint8Array): string | undefined {
  if (publicKey.length !== KEY_BYTES) return `an Ed25519 public key has ${KEY_BYTES} bytes`;
  const point = orUndefined(() => Point.fromBytes(publicKey));
  if (point !== undefined) return point.isSmallOrder() ? 'the public key is a point of small order' : undefined;
  // ZIP 215 also accepts encodings with y ≥ p, and with x = 0 and the sign bit set.
  const isPoint = orUndefined(() => Point.fromBytes(publicKey, true)) !== undefined;
  return isPoint ? 'the public key is not canonically encoded' : 'the public key is not a point on the curve';
}

function orUndefined<Value>(decode: () => Value): Value | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
