// The commitment to an allocation, which members publish before the reveal; bound to chamber and agent.
import { type Allocation, fromHex, type Hex, toHex } from '../vocabulary/values.ts';
import { keccak256 } from './keccak.ts';

export interface Opening {
  readonly chamberId: number;
  readonly did: string;
  /** In the order of the reveal, which the hash covers. */
  readonly allocations: readonly Allocation[];
  readonly salt: Hex;
}

/** keccak256(abi.encode(uint256 chamberId, string agentDid, (string ideaId, uint256 bps)[] allocations, bytes salt)). */
export function commitmentHash(opening: Opening): Hex {
  return toHex(keccak256(fromHex(encodeOpening(opening))));
}

const WORD_BYTES = 32;
const WORD_DIGITS = 2 * WORD_BYTES;

/** The hashed bytes. Numbers must be integers of at least 0. */
export function encodeOpening({ chamberId, did, allocations, salt }: Opening): Hex {
  const tuples = allocations.map(({ ideaId, bps }) => word(2 * WORD_BYTES) + word(bps) + bytes(utf8(ideaId)));
  const list = word(tuples.length) + withOffsets(tuples, 0);
  return `0x${word(chamberId)}${withOffsets([bytes(utf8(did)), list, bytes(salt.slice(2))], WORD_BYTES)}`;
}

function word(value: number): string {
  return value.toString(16).padStart(WORD_DIGITS, '0');
}

/** The length, then the bytes padded with zeros to whole words. */
function bytes(digits: string): string {
  return word(digits.length / 2) + digits.padEnd(Math.ceil(digits.length / WORD_DIGITS) * WORD_DIGITS, '0');
}

/** The offset of each part, counted from `before` bytes ahead of the first offset, then the parts. */
function withOffsets(parts: readonly string[], before: number): string {
  let offset = before + parts.length * WORD_BYTES;
  const offsets = parts.map((part) => {
    const at = offset;
    offset += part.length / 2;
    return word(at);
  });
  return offsets.join('') + parts.join('');
}

const encoder = new TextEncoder();

function utf8(text: string): string {
  return toHex(encoder.encode(text)).slice(2);
}
