// The rule for valid Ed25519 signatures, identical in service, auditor and client on every version of Node.
import { Point } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes } from '@noble/hashes/utils.js';

const POINT_BYTES = 32;
const SIGNATURE_BYTES = 64;
const { n: ORDER } = Point.CURVE();

/**
 * The caller that a signature is queued for. A caller can claim any registered key, so turns are shared among networks first, then among
 * keys.
 */
export interface VerifyCaller {
  /** As named by clientNetwork. */
  readonly network: string;
  /** The DID of a registered key; absent for an unregistered key, which has lower priority. */
  readonly did?: string;
}

/**
 * Resolves to the result of isSignedBy, or to false if the key or the signature has the wrong length. Rejects with FORUM_ERR_UNAVAILABLE if
 * too many signatures are waiting, of this caller or in total, and after close.
 */
export type SignatureVerifier = (
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
  caller: VerifyCaller,
) => Promise<boolean>;

/** A key that weaknessOf accepts, prepared for verifying many signatures. */
export interface VerifyingKey {
  readonly bytes: Uint8Array;
  /** −A, 16 · −A, 16² · −A … for the key A, computed once, which makes later verifications three times as fast. */
  readonly powers: () => readonly Point[];
}

/** Throws if the bytes are not the canonical encoding of a point. */
export function toVerifyingKey(publicKey: Uint8Array): VerifyingKey {
  const negated = Point.fromBytes(publicKey).negate();
  let powers: readonly Point[] | undefined;
  return {
    bytes: publicKey,
    powers: () => {
      powers ??= powersOf(negated);
      return powers;
    },
  };
}

const DIGIT_BITS = 4n;
const DIGIT_MAX = 15n;
/** The number of digits of a scalar below the order of the base point. */
const DIGITS = 64;

function powersOf(point: Point): readonly Point[] {
  const powers = [point];
  for (let last = point; powers.length < DIGITS; powers.push(last)) {
    for (let bit = 0n; bit < DIGIT_BITS; bit++) last = last.double();
  }
  return powers;
}

/**
 * The rule: RFC 8032, 5.1.7, without the cofactor. A signature R ‖ S over M under a key A in which weaknessOf finds
 * nothing is valid if and only if S < L and the encoding of SB − kA, where k = SHA-512(R ‖ A ‖ M) mod L, equals the 32
 * bytes of R. So R may be any point, the identity and others of small order included, in its canonical encoding.
 *
 * A faster verifier may replace this function as follows:
 * - A signature that libsodium or node:crypto accepts is valid. Both recompute SB − kA, compare it with R byte by byte, and
 *   reject S ≥ L.
 * - A signature that they reject is invalid, unless hasSmallOrderR: libsodium and the OpenSSL of Node 24 and later also reject
 *   R of small order; the OpenSSL of Node 20 and 22 does not. They have no other reason to reject a valid signature.
 * - If they reject a signature whose R has small order, isSignedBy must decide. It blocks the calling thread for milliseconds, but
 *   no signer produces such an R by chance, so a caller can limit the number of these checks without harm to honest signers.
 *
 * @noble/ed25519's own `verify` is not a substitute: it multiplies by the cofactor in both of its modes.
 */
export function isSignedBy(key: VerifyingKey, message: Uint8Array, signature: Uint8Array): boolean {
  if (signature.length !== SIGNATURE_BYTES) return false;
  const encodedR = signature.subarray(0, POINT_BYTES);
  const s = toScalar(signature.subarray(POINT_BYTES));
  if (s >= ORDER) return false;
  const k = toScalar(sha512(concatBytes(encodedR, key.bytes, message))) % ORDER;
  const r = Point.BASE.multiply(s, false).add(multiply(key.powers(), k));
  return bytesToHex(r.toBytes()) === bytesToHex(encodedR);
}

/** Multiplies the point by the scalar: sums, over each digit d, d times the sum of all powers with that digit. */
function multiply(powers: readonly Point[], scalar: bigint): Point {
  const sums = new Array<Point>(Number(DIGIT_MAX) + 1).fill(Point.ZERO);
  let rest = scalar;
  for (const power of powers) {
    const digit = Number(rest & DIGIT_MAX);
    if (digit > 0) sums[digit] = (sums[digit] as Point).add(power);
    rest >>= DIGIT_BITS;
  }
  let product = Point.ZERO;
  let sum = Point.ZERO;
  for (let digit = Number(DIGIT_MAX); digit > 0; digit--) {
    sum = sum.add(sums[digit] as Point);
    product = product.add(sum);
  }
  return product;
}

/** The canonical encodings of the eight points whose order divides the cofactor. SB − kA is always encoded canonically. */
const SMALL_ORDER_POINTS: ReadonlySet<string> = new Set([
  '0100000000000000000000000000000000000000000000000000000000000000',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
]);

/** Whether R is the identity or another point of small order. Only then is a fast verifier's rejection not final. */
export function hasSmallOrderR(signature: Uint8Array): boolean {
  return SMALL_ORDER_POINTS.has(bytesToHex(signature.subarray(0, POINT_BYTES)));
}

function toScalar(bytes: Uint8Array): bigint {
  return BigInt(`0x${bytesToHex(bytes.toReversed())}`);
}
