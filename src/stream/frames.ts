// Lines as they are written to consumers: WebSocket text frames (RFC 6455, 5.2) and server-sent events (WHATWG HTML, 9.2).
import type { Page } from '../log/log.ts';

const FINAL_TEXT = 0x81;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const LENGTH_7_MAX = 125;
const LENGTH_16_MAX = 0xffff;
const HEADER_BYTES_MAX = 10;
const FIELDS_BYTES_MAX = 'id: 9007199254740991\ndata: '.length;
const LINE_BREAK = 0x0a;

const built = new WeakMap<Page, Buffer>();

/** One unmasked text frame for each line of the page, in one buffer, built once and written to every consumer. */
export function framesOf(page: Page): Buffer {
  const known = built.get(page);
  if (known !== undefined) return known;
  const frames = encode(page, { prefixBytesMax: HEADER_BYTES_MAX, writePrefix: writeHeader, suffix: '' });
  built.set(page, frames);
  return frames;
}

/** An event for each line of the page, which begins after the event `after`. */
export function serverSentEventsOf(page: Page, after: number): Buffer {
  let eventId = after;
  const writePrefix = (out: Buffer, at: number) => at + out.write(`id: ${++eventId}\ndata: `, at, 'latin1');
  return encode(page, { prefixBytesMax: FIELDS_BYTES_MAX, writePrefix, suffix: '\n\n' });
}

interface Encoding {
  readonly prefixBytesMax: number;
  /** What stands before a line of that length, written to the buffer at that offset; returns where it ended. */
  readonly writePrefix: (out: Buffer, at: number, length: number) => number;
  readonly suffix: string;
}

function encode({ ndjson, count }: Page, { prefixBytesMax, writePrefix, suffix }: Encoding): Buffer {
  const out = Buffer.allocUnsafe(ndjson.length + count * (prefixBytesMax + suffix.length));
  let written = 0;
  for (let start = 0; start < ndjson.length; ) {
    const end = ndjson.indexOf(LINE_BREAK, start);
    written = writePrefix(out, written, end - start);
    written += ndjson.copy(out, written, start, end);
    if (suffix !== '') written += out.write(suffix, written, 'latin1');
    start = end + 1;
  }
  return out.subarray(0, written);
}

function writeHeader(frames: Buffer, at: number, length: number): number {
  frames[at] = FINAL_TEXT;
  if (length <= LENGTH_7_MAX) {
    frames[at + 1] = length;
    return at + 2;
  }
  if (length <= LENGTH_16_MAX) {
    frames[at + 1] = LENGTH_16;
    return frames.writeUInt16BE(length, at + 2);
  }
  frames[at + 1] = LENGTH_64;
  return frames.writeBigUInt64BE(BigInt(length), at + 2);
}
