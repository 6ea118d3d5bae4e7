// Whether lines are as they were written. Beside a line is its checksum, which costs a read a tenth of what a hash would and finds
// what a disk or a slip does to a file. A fold, fsck and the auditor check the hashes, which
// also detect forged lines.
import { crc32 } from 'node:zlib';

/** A seal is a line's length times this, plus its checksum: one number a row is the cheapest to read. */
export const SEAL_UNIT = 2 ** 33;

export function lengthOf(seal: number): number {
  return Math.floor(seal / SEAL_UNIT);
}

/**
 * The CRC-32 of the sealed lines together, each ended by a line break. A CRC-32 is the remainder
 * of a polynomial: to append n bytes multiplies it by x^8n and adds the checksum of those bytes.
 */
export function checksumOfLines(seals: readonly number[]): number {
  let remainder = 0;
  for (const seal of seals) {
    const length = lengthOf(seal);
    const checksum = seal - length * SEAL_UNIT;
    remainder = product(remainder, powerOf(length)) ^ checksum;
    remainder = product(X_8, remainder) ^ LINE_BREAK_CRC;
  }
  return remainder >>> 0;
}

/** Bit 31 is the coefficient of x^0. */
const POLYNOMIAL = 0xedb88320;
const ONE = 1 << 31;
const X_8 = 1 << 23;
const LINE_BREAK_CRC = crc32('\n');

/** x^8n, by n. */
const powers = [ONE];
const POWERS_MAX = 65_536;

function powerOf(bytes: number): number {
  if (bytes > POWERS_MAX) {
    const half = powerOf(bytes >>> 1);
    return product(powerOf(bytes & 1), product(half, half));
  }
  for (let n = powers.length; n <= bytes; n++) powers.push(product(X_8, powers[n - 1] as number));
  return powers[bytes] as number;
}

/** Modulo the polynomial; without branches, which would take ten times as long. */
function product(left: number, right: number): number {
  let sum = 0;
  for (let rest = left, shifted = right; rest !== 0; rest <<= 1) {
    sum ^= shifted & (rest >> 31);
    shifted = (shifted >>> 1) ^ (POLYNOMIAL & -(shifted & 1));
  }
  return sum;
}
