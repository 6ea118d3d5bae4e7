// Lines as WebSocket text frames (RFC 6455, 5.2), built once for a page and written as they are to every consumer.
import type { Page } from '../log/log.ts';

const FINAL_TEXT = 0x81;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const LENGTH_7_MAX = 125;
const LENGTH_16_MAX = 0xffff;
const LINE_BREAK = 0x0a;

const built = new WeakMap<Page, Buffer>();

/** One unmasked text frame for each line of the page, in one buffer. */
export function framesOf(page: Page): Buffer {
  const known = built.get(page);
  if (known !== undefined) return known;
  const frames = buildFrames(page);
  built.set(page, frames);
  return frames;
}

function buildFrames({ ndjson, count }: Page): Buffer {
  const frames = Buffer.allocUnsafe(ndjson.length + count * 10);
  let written = 0;
  for (let start = 0; start < ndjson.length; ) {
    const end = ndjson.indexOf(LINE_BREAK, start);
    written = writeHeader(frames, written, end - start);
    written += ndjson.copy(frames, written, start, end);
    start = end + 1;
  }
  return frames.subarray(0, written);
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
