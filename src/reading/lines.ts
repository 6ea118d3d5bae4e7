// Lines of hostile input, one at a time, so that a log of any length passes through in flat memory.
import { concatBytes } from '@noble/hashes/utils.js';
import { withCommas } from '../vocabulary/values.ts';
import { LimitError, type ReadLimits } from './limits.ts';

export interface RawLine {
  /** The line without its line break. */
  readonly bytes: Uint8Array;
  /** Whether a line break ended it; the last line of a file may be torn. */
  readonly isEnded: boolean;
}

const LINE_BREAK = 0x0a;

/** Throws a LimitError on a line that is longer. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  { lineBytesMax }: Pick<ReadLimits, 'lineBytesMax'>,
): AsyncGenerator<RawLine, void, undefined> {
  let parts: Uint8Array[] = [];
  let partsBytes = 0;
  const requireBytes = (bytes: number) => {
    if (bytes > lineBytesMax)
      throw new LimitError('lineBytesMax', `it holds a line of more than ${withCommas(lineBytesMax)} bytes`);
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_BREAK); end !== -1; end = chunk.indexOf(LINE_BREAK, start)) {
      const rest = chunk.subarray(start, end);
      requireBytes(partsBytes + rest.length);
      yield { bytes: parts.length === 0 ? rest : concatBytes(...parts, rest), isEnded: true };
      parts = [];
      partsBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    partsBytes += chunk.length - start;
    requireBytes(partsBytes);
  }
  if (partsBytes > 0) yield { bytes: concatBytes(...parts), isEnded: false };
}
