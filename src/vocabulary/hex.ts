// Bytes as 0x-prefixed hexadecimal and back, in Node and browsers alike.
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import type { Hex } from './values.ts';

/** The bytes as lower-case hexadecimal with 0x in front. */
export function toHex(bytes: Uint8Array): Hex {
  return `0x${bytesToHex(bytes)}`;
}

/** The bytes of 0x-prefixed hexadecimal in any case; throws a RangeError on anything else. */
export function fromHex(hex: string): Uint8Array {
  if (!hex.startsWith('0x')) throw new RangeError('hexadecimal must start with 0x');
  return hexToBytes(hex.slice(2));
}
