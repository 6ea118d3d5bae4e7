// Bytes as 0x-prefixed hexadecimal and back, in Node and browsers alike.
import type { Hex } from './values.ts';

const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const HEX = /^0x(?:[0-9a-fA-F]{2})*$/;

/** The bytes as lower-case hexadecimal with 0x in front. */
export function toHex(bytes: Uint8Array): Hex {
  let digits = '';
  for (const byte of bytes) digits += PAIRS[byte];
  return `0x${digits}`;
}

/** The bytes of 0x-prefixed hexadecimal in any case; throws a RangeError on anything else. */
export function fromHex(hex: string): Uint8Array {
  if (!HEX.test(hex)) throw new RangeError('hexadecimal must be 0x and an even number of hex digits');
  const bytes = new Uint8Array(hex.length / 2 - 1);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(hex.slice(2 * i + 2, 2 * i + 4), 16);
  return bytes;
}
