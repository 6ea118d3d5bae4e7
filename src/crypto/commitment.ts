// The commitment to an allocation, which a member publishes before the reveal. It is bound to the chamber and the agent.
import { type Allocation, fromHex, type Hex, toHex } from '../vocabulary/values.ts';
import { keccak256 } from './keccak.ts';

export interface Opening {
  readonly chamberId: number;
  readonly did: string;
  /** In the order of the reveal: the hash covers the order. */
  readonly allocations: readonly Allocation[];
  readonly salt: Hex;
}

/** keccak256(abi.encode(uint256 chamberId, string agentDid, (string ideaId, uint256 bps)[] allocations, bytes salt)). */
export function commitmentHash(opening: Opening): Hex {
  return toHex(keccak256(fromHex(encodeOpening(opening))));
}

const WORD_BYTES = 32;
const WORD_DIGITS = 2 * WORD_BYTES;

/** Returns the bytes to hash. Numbers must be non-negative integers. */
export function encodeOpening({ chamberId, did, allocations, salt }: Opening): Hex {
  const tuples = allocations.map(({ ideaId, bps }) => word(2 * WORD_BYTES) + word(bps) + bytes(utf8(ideaId)));
  const list = word(tuples.length) + withOffsets(tuples, 0);
  return `0x${word(chamberId)}${withOffsets([bytes(utf8(did)), list, bytes(salt.slice(2))], WORD_BYTES)}`;
}

function word(value: number): string {
  return value.toString(16).padStart(WORD_DIGITS, '0');
}

/** Returns the length and the bytes, padded with zeros to whole words. */
function bytes(digits: string): string {
  return word(digits.length / 2) + digits.padEnd(Math.ceil(digits.length / WORD_DIGITS) * WORD_DIGITS, '0');
}

/** Returns the offset of each part, then the parts. Offsets are counted from the point `before` bytes before the first one. */
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
