// The project's one rule for a valid signature, on @noble/ed25519's curve: RFC 8032, cofactorless, S < L. The library's own
// verify forgives a part of small order in R, which the service refuses.
import { Point } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';

const POINT_BYTES = 32;
const SIGNATURE_BYTES = 64;
const { n: ORDER } = Point.CURVE();

/** A key that parseDid and weaknessOf let pass, ready for many signatures. */
export interface VerifyingKey {
  readonly bytes: Uint8Array;
  readonly negated: Point;
}

export function toVerifyingKey(publicKey: Uint8Array): VerifyingKey {
  return { bytes: publicKey, negated: Point.fromBytes(publicKey).negate() };
}

/** Whether R = SB − kA, compared as bytes, so that every encoding of R but the canonical one is refused too. */
export function isSignedBy(key: VerifyingKey, message: Uint8Array, signature: Uint8Array): boolean {
  if (signature.length !== SIGNATURE_BYTES) return false;
  const encodedR = signature.subarray(0, POINT_BYTES);
  const s = toScalar(signature.subarray(POINT_BYTES));
  if (s >= ORDER) return false;
  const k = toScalar(sha512(Buffer.concat([encodedR, key.bytes, message]))) % ORDER;
  const r = Point.BASE.multiply(s, false).add(key.negated.multiply(k, false));
  return Buffer.from(r.toBytes()).equals(encodedR);
}

/** Little-endian, as RFC 8032 has it. */
function toScalar(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}
