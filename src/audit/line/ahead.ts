// Work on lines that begins before their turn, so that what it waits for is done by then.
import type { RawLine } from './input.ts';

/** Few enough that most are done with before V8 takes what they hold for long-lived. */
const LINES_MAX = 128;
const BYTES_MAX = 4 * 1024 * 1024;

/** Yields in order what `begin` makes of each line, when it has begun on many lines after it. */
export async function* ahead<Begun>(
  lines: AsyncIterable<RawLine>,
  begin: (line: RawLine) => Begun,
): AsyncGenerator<Begun, void, undefined> {
  const begun: { readonly value: Begun; readonly size: number }[] = [];
  let bytes = 0;
  for await (const line of lines) {
    const size = line.bytes.length;
    begun.push({ value: begin(line), size });
    bytes += size;
    while (begun.length > LINES_MAX || bytes > BYTES_MAX) {
      const { value, size } = begun.shift() as (typeof begun)[number];
      bytes -= size;
      yield value;
    }
  }
  for (const { value } of begun) yield value;
}
