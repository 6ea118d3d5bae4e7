// Signatures on which Ed25519 verifiers are known to disagree: points with a component of small order, scalars beyond the group
// order, and encodings that are not canonical.
import { createHash } from 'node:crypto';
import { Point } from '@noble/ed25519';
import { weaknessOf } from '../../src/crypto/did-key.ts';

export interface EdgeSignature {
  readonly title: string;
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  readonly signature: Uint8Array;
}

export interface JudgedSignature extends EdgeSignature {
  readonly isValid: boolean;
}

const { n: ORDER, p: PRIME } = Point.CURVE();
const SECRET = 0x1f3a5c7e9b1d3f5a7c9e0b2d4f6a8c0e1f3a5c7e9b1d3f5a7c9e0b2dn;
const NONCE = 0x2b4d6f8a1c3e5a7c9e1b3d5f7a9c1e3b5d7f9a1c3e5b7d9f1a3c5en;
/** A point of order 8; its multiples are all points of small order. */
const TORSION = Point.fromHex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a');
const EIGHTHS = [0, 1, 2, 3, 4, 5, 6, 7] as const;

/**
 * The verdicts of node:crypto in Node 20.20 (OpenSSL 3.0), which follows the project's rule; each hex digit encodes four cases,
 * in order.
 */
const VERDICTS =
  'c0005552aacac28a28b4aaaaaac0480aaaaab2ac48a48b2caaaab0204081ff000000000000000000000000000000000000ff' +
  '8000000000000000000000000000000000000000000000000000000';

/** The cases whose keys the service accepts. */
export function edgeSignatures(): readonly JudgedSignature[] {
  return [...torsionCases(), ...scalarCases(), ...encodingCases()]
    .filter(({ publicKey }) => weaknessOf(publicKey) === undefined)
    .map((each, index) => ({ ...each, isValid: isValid(index) }));
}

/** R is the identity, S = ka: valid, although libsodium and the OpenSSL of Node 24 reject it. */
export function signatureWithIdentityAsR(message: Uint8Array): EdgeSignature {
  const publicKey = toBytes(SECRET, 0);
  const identity = Point.ZERO.toBytes();
  const signature = join(identity, littleEndian(mod(challenge(identity, publicKey, message) * SECRET)));
  return { title: 'R = identity', publicKey, message, signature };
}

/** The canonical encodings of all points of small order. */
export function smallOrderPoints(): readonly Uint8Array[] {
  return EIGHTHS.map((part) => toBytes(0n, part));
}

function isValid(index: number): boolean {
  return ((Number.parseInt(VERDICTS.charAt(index >> 2), 16) >> (3 - (index & 3))) & 1) === 1;
}

/**
 * Keys and nonce points with every component of small order; messages for which R + hA = SB is true exactly, or only up to the
 * cofactor.
 */
function torsionCases(): readonly EdgeSignature[] {
  return EIGHTHS.flatMap((ofKey) =>
    EIGHTHS.flatMap((ofNonce) =>
      [SECRET, 0n].flatMap((secret) =>
        [NONCE, 0n].flatMap((nonce) => {
          const parts = `A = ${secret && 'a'}B + ${ofKey}T, R = ${nonce && 'r'}B + ${ofNonce}T`;
          const publicKey = toBytes(secret, ofKey);
          const point = toBytes(nonce, ofNonce);
          const cases = messages(48).map((message) => {
            const hash = challenge(point, publicKey, message);
            const isExact = (hash * BigInt(ofKey) + BigInt(ofNonce)) % 8n === 0n;
            const signature = join(point, littleEndian(mod(nonce + hash * secret)));
            return { title: `${parts}, ${isExact ? 'exact' : 'up to the cofactor'}`, publicKey, message, signature };
          });
          return firstOfEachTitle(cases);
        }),
      ),
    ),
  );
}

/** Signatures with S beyond the group order but of the same residue, which only lax verifiers accept. */
function scalarCases(): readonly EdgeSignature[] {
  const publicKey = toBytes(SECRET, 0);
  const point = toBytes(NONCE, 0);
  return messages(4).flatMap((message) => {
    const right = mod(NONCE + challenge(point, publicKey, message) * SECRET);
    const scalars = [right, right + ORDER, right + 2n * ORDER, right + 15n * ORDER, 0n, ORDER, right ^ 1n];
    return scalars.map((scalar) => ({
      title: `S = ${scalar === right ? 'right' : scalar.toString(16)}`,
      publicKey,
      message,
      signature: join(point, littleEndian(scalar)),
    }));
  });
}

/** Every small-order y in all its encodings, canonical or not, as R and as A; the hash covers the encoding as sent. */
function encodingCases(): readonly EdgeSignature[] {
  const small = smallOrderPoints().map((point) => BigInt(`0x${Buffer.from(point).reverse().toString('hex')}`));
  const ys = [...small, ...small.map((y) => y ^ (1n << 255n)), PRIME, PRIME + 1n, PRIME - 1n, 2n ** 255n - 1n, 2n];
  const encodings = ys.flatMap((y) => [y, y ^ (1n << 255n)]).map(littleEndian);
  const key = toBytes(SECRET, 0);
  return encodings.flatMap((encoding) =>
    messages(9).flatMap((message, index) => {
      const asNonce = littleEndian(mod(challenge(encoding, key, message) * SECRET));
      const point = toBytes(NONCE, 0);
      const title = `encoding ${Buffer.from(encoding).toString('hex')}, message ${index}`;
      return [
        { title: `${title} as R`, publicKey: key, message, signature: join(encoding, asNonce) },
        { title: `${title} as A`, publicKey: encoding, message, signature: join(point, littleEndian(NONCE)) },
        { title: `${title} as both`, publicKey: encoding, message, signature: join(encoding, littleEndian(0n)) },
      ];
    }),
  );
}

function firstOfEachTitle(cases: readonly EdgeSignature[]): readonly EdgeSignature[] {
  return [...new Map(cases.map((each) => [each.title, each])).values()];
}

function messages(count: number): readonly Uint8Array[] {
  return Array.from({ length: count }, (_, index) => new TextEncoder().encode(index === 0 ? '' : `message ${index}`));
}

function toBytes(scalar: bigint, eighths: number): Uint8Array {
  const point = scalar === 0n ? Point.ZERO : Point.BASE.multiply(scalar);
  return (eighths === 0 ? point : point.add(TORSION.multiply(BigInt(eighths), false))).toBytes();
}

function challenge(point: Uint8Array, publicKey: Uint8Array, message: Uint8Array): bigint {
  const digest = createHash('sha512').update(point).update(publicKey).update(message).digest();
  return mod(BigInt(`0x${digest.reverse().toString('hex')}`));
}

function mod(value: bigint): bigint {
  return value % ORDER;
}

function littleEndian(value: bigint): Uint8Array {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();
}

function join(point: Uint8Array, scalar: Uint8Array): Uint8Array {
  return Buffer.concat([point, scalar]);
}
