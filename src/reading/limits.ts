// What a response of another operator's service may take of memory and time. The response is never trusted.

export interface ReadLimits {
  /** The length of a response that is read whole, in bytes after decompression. */
  readonly responseBytesMax: number;
  /** The length of a list of ideas, in bytes after decompression. It is parsed item by item, so it may be longer than other responses. */
  readonly listBytesMax: number;
  /** The texts in such a list, in characters: an escaped one takes up to 6 bytes of JSON and two of memory. */
  readonly listCharsMax: number;
  /** The length of an item of such a list. */
  readonly itemBytesMax: number;
  /** The values in the JSON of a response, a line or an event: small ones take far more memory than bytes on the wire. */
  readonly jsonValuesMax: number;
  /** The length of a line of a log or an event of a stream, in bytes after decompression. */
  readonly lineBytesMax: number;
  /** The length of the lines that are taken from one response, in bytes: the rest is requested again. */
  readonly pageBytesMax: number;
  /** What a chamber's log adds to its state (ideas, members, allocations), in characters of JSON. */
  readonly stateCharsMax: number;
  /** The time from the request to the last byte of the response, in milliseconds. A response that may wait gets its wait on top. */
  readonly responseMillisMax: number;
  /** The time without a whole line or event on a stream, in milliseconds: the service sends something every 30 s. */
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

/** A response exceeds a limit: the rest of it is not read. The message is a sentence about "it", the response or the input. */
export class LimitError extends Error {
  readonly limit: keyof ReadLimits;

  constructor(limit: keyof ReadLimits, message: string) {
    super(message);
    this.name = 'LimitError';
    this.limit = limit;
  }
}
