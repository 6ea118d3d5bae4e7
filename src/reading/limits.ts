// Bounds the memory and time for a response of another operator's service. Responses are never trusted.
import { requireModestJson } from '../vocabulary/json.ts';

export interface ReadLimits {
  /** The length of a response that is read whole, in bytes after decompression. */
  readonly responseBytesMax: number;
  /** The length of a list of ideas, in bytes after decompression. Lists are parsed item by item, so they may be longer. */
  readonly listBytesMax: number;
  /** The texts in such a list, in characters: an escaped one takes up to 6 bytes of JSON and two of memory. */
  readonly listCharsMax: number;
  /** The length of an item of such a list. */
  readonly itemBytesMax: number;
  /** The values in the JSON of a response, a line or an event: small ones take far more memory than bytes on the wire. */
  readonly jsonValuesMax: number;
  /** The length of a line of a log or an event of a stream, in bytes after decompression. */
  readonly lineBytesMax: number;
  /** The bytes of lines that are read from one response; the rest is requested again. */
  readonly pageBytesMax: number;
  /** The size of a chamber's state (ideas, members, allocations), in characters of JSON. */
  readonly stateCharsMax: number;
  /** From the request to the last byte of the response. A long poll's wait is added. */
  readonly responseMillisMax: number;
  /** The time without a whole line or event on a stream: the service sends something every 30 s. */
  readonly silenceMillisMax: number;
}

const MEBIBYTE = 1024 * 1024;

export const READ_LIMITS: ReadLimits = {
  responseBytesMax: 3 * MEBIBYTE,
  // 256 ideas with the longest descriptions of control characters, each escaped in 6 bytes, take 12.7 MB, and each idea 50 KB.
  listBytesMax: 14 * MEBIBYTE,
  listCharsMax: 4 * MEBIBYTE,
  itemBytesMax: 65_536,
  jsonValuesMax: 50_000,
  // Far above any line that a service with default limits writes.
  lineBytesMax: 4 * MEBIBYTE,
  pageBytesMax: 4 * MEBIBYTE,
  stateCharsMax: 16 * MEBIBYTE,
  responseMillisMax: 15_000,
  silenceMillisMax: 60_000,
};

/** A response exceeds a limit, and the rest is not read. The message is a sentence about "it", the response or the input. */
export class LimitError extends Error {
  readonly limit: keyof ReadLimits;

  constructor(limit: keyof ReadLimits, message: string) {
    super(message);
    this.name = 'LimitError';
    this.limit = limit;
  }
}

/** undefined if the text is not JSON. Throws a LimitError for JSON of too many values or levels. */
export function parseModestJson(text: string, { jsonValuesMax }: Pick<ReadLimits, 'jsonValuesMax'>): unknown {
  try {
    requireModestJson(text, jsonValuesMax);
  } catch (error) {
    throw new LimitError('jsonValuesMax', `its JSON is not read: ${(error as Error).message}`);
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
