// Limits on the memory and time for responses from other operators' services, which are never trusted.
import { requireBoundedJson } from '../vocabulary/json.ts';

export interface ReadLimits {
  /** The maximum length of a response that is read into memory, in bytes after decompression. */
  readonly responseBytesMax: number;
  /** The maximum length of a list of ideas, in bytes after decompression. Lists are parsed item by item, so they may be longer. */
  readonly listBytesMax: number;
  /** The maximum number of characters in all strings of such a list. An escaped character takes up to 6 bytes of JSON and two of memory. */
  readonly listCharsMax: number;
  /** The maximum length of an item of such a list, in bytes. */
  readonly itemBytesMax: number;
  /** The maximum number of JSON values in a response, a line or an event. Small values take far more memory than bytes on the wire. */
  readonly jsonValuesMax: number;
  /** The maximum length of a line of a log or an event of a stream, in bytes after decompression. */
  readonly lineBytesMax: number;
  /** The maximum number of bytes of lines read from one response; the client requests the rest again. */
  readonly pageBytesMax: number;
  /** The maximum size of a chamber's state (ideas, members, allocations), in characters of JSON. */
  readonly stateCharsMax: number;
  /** The time from the request to the last byte of the response. A long poll's wait is added. */
  readonly responseMillisMax: number;
  /** The maximum time without a whole line or event on a stream: the service sends something every 30 s. */
  readonly silenceMillisMax: number;
}

const MEBIBYTE = 1024 * 1024;

export const READ_LIMITS: ReadLimits = {
  responseBytesMax: 3 * MEBIBYTE,
  // 256 ideas whose descriptions have the maximum length and consist of control characters (6 bytes of JSON each) take 12.7 MB, 50 KB per
  // idea.
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

/** Thrown when a response exceeds a limit; the rest is not read. In the message, "it" is the response or the input. */
export class LimitError extends Error {
  readonly limit: keyof ReadLimits;

  constructor(limit: keyof ReadLimits, message: string) {
    super(message);
    this.name = 'LimitError';
    this.limit = limit;
  }
}

/** Returns undefined if the text is not JSON. Throws a LimitError if the JSON has too many values or levels. */
export function parseBoundedJson(text: string, { jsonValuesMax }: Pick<ReadLimits, 'jsonValuesMax'>): unknown {
  try {
    requireBoundedJson(text, jsonValuesMax);
  } catch (error) {
    throw new LimitError('jsonValuesMax', `its JSON is not read: ${(error as Error).message}`);
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
