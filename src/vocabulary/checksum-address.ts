// EVM addresses whose capitalisation is a checksum (EIP-55).
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Hex } from './values.ts';

/** Adds the checksum to an address in any case: a letter is a capital if the same digit of the address's hash is 8 or more. */
export function toChecksumAddress(address: string): Hex {
  const digits = address.slice('0x'.length).toLowerCase();
  const hash = bytesToHex(keccak_256(utf8ToBytes(digits)));
  const isCapital = (index: number) => Number.parseInt(hash.charAt(index), 16) >= 8;
  return `0x${[...digits].map((digit, index) => (isCapital(index) ? digit.toUpperCase() : digit)).join('')}`;
}
