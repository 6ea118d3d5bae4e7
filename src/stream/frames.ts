// Encodes lines as WebSocket text frames (RFC 6455, 5.2) and server-sent events (WHATWG HTML, 9.2). The frame builder of ws allocates a
// header for each line, and takes 1.2 to 2 times as long on a page of history.
import type { Page } from '../log/log.ts';
import { cursorOf } from '../vocabulary/events.ts';

/** The first two bytes of a header: a final text frame, and the encoding of its length. */
const TEXT_7 = 0x8100;
const TEXT_16 = 0x817e;
const TEXT_64 = 0x817f;
const LENGTH_7_MAX = 125;
const LENGTH_16_MAX = 0xffff;
const HEADER_BYTES_MAX = 10;
const FIELDS_BYTES_MAX = 'id: 9007199254740991:9007199254740991\ndata: '.length;
/** The first bytes of a line, which contain its chamberId, did and eventId. */
const LINE_HEAD_BYTES = 160;
const LINE_BREAK = 0x0a;

const built = new WeakMap<Page, Buffer>();

/** Returns an unmasked text frame for each line, in one buffer that is built once for all consumers. */
export function framesOf(page: Page): Buffer {
  let frames = built.get(page);
  if (frames === undefined) {
    frames = encode(page, { prefixBytesMax: HEADER_BYTES_MAX, writePrefix: writeHeader, suffix: '' });
    built.set(page, frames);
  }
  return frames;
}

/** Returns an event for each line. `after` is the event before the page; undefined for a page of all chambers. */
export function serverSentEventsOf(page: Page, after: number | undefined): Buffer {
  let eventId = after;
  const idAt = (start: number) =>
    eventId === undefined ? cursorOf(page.ndjson.toString('latin1', start, start + LINE_HEAD_BYTES)) : ++eventId;
  const writePrefix = (out: Buffer, at: number, _length: number, start: number) =>
    at + out.write(`id: ${idAt(start)}\ndata: `, at, 'latin1');
  return encode(page, { prefixBytesMax: FIELDS_BYTES_MAX, writePrefix, suffix: '\n\n' });
}

interface Encoding {
  readonly prefixBytesMax: number;
  /** Writes the prefix of a line at the offset `at`; returns the offset after the prefix. */
  readonly writePrefix: (out: Buffer, at: number, length: number, start: number) => number;
  readonly suffix: string;
}

function encode({ ndjson, count }: Page, { prefixBytesMax, writePrefix, suffix }: Encoding): Buffer {
  const out = Buffer.allocUnsafe(ndjson.length + count * (prefixBytesMax + suffix.length));
  let written = 0;
  for (let start = 0; start < ndjson.length; ) {
    const end = ndjson.indexOf(LINE_BREAK, start);
    written = writePrefix(out, written, end - start, start);
    written += ndjson.copy(out, written, start, end);
    if (suffix !== '') written += out.write(suffix, written, 'latin1');
    start = end + 1;
  }
  return out.subarray(0, written);
}

function writeHeader(out: Buffer, at: number, length: number): number {
  if (length <= LENGTH_7_MAX) return out.writeUInt16BE(TEXT_7 + length, at);
  if (length <= LENGTH_16_MAX) return out.writeUInt16BE(length, out.writeUInt16BE(TEXT_16, at));
  return out.writeBigUInt64BE(BigInt(length), out.writeUInt16BE(TEXT_64, at));
}
