// Splits hostile input into lines, one at a time, so that a log of any length needs constant memory.
import { withCommas } from '../vocabulary/values.ts';
import { Chunks } from './chunks.ts';
import { LimitError, type ReadLimits } from './limits.ts';

export interface RawLine {
  /** Without the line break. */
  readonly bytes: Uint8Array;
  /** Whether a line break follows the line. The last line of a file may be incomplete. */
  readonly isEnded: boolean;
}

const LINE_BREAK = 0x0a;

/** Throws a LimitError if a line exceeds lineBytesMax. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  { lineBytesMax }: Pick<ReadLimits, 'lineBytesMax'>,
): AsyncGenerator<RawLine, void, undefined> {
  const begun = new Chunks();
  const requireBytes = (bytes: number) => {
    if (bytes > lineBytesMax)
      throw new LimitError('lineBytesMax', `it contains a line of more than ${withCommas(lineBytesMax)} bytes`);
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_BREAK); end !== -1; end = chunk.indexOf(LINE_BREAK, start)) {
      const rest = chunk.subarray(start, end);
      requireBytes(begun.length + rest.length);
      start = end + 1;
      if (begun.length > 0) begun.add(rest);
      yield { bytes: begun.length > 0 ? begun.take() : rest, isEnded: true };
    }
    // An empty remainder, as after most chunks of a live stream, would keep the whole chunk in memory.
    if (start === chunk.length) continue;
    requireBytes(begun.length + chunk.length - start);
    begun.add(chunk.subarray(start));
  }
  if (begun.length > 0) yield { bytes: begun.take(), isEnded: false };
}
