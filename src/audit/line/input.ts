// Reads untrusted lines one at a time, in constant memory. Its errors mean that the input can't be audited at all, unlike a broken
// log.
import { LimitError, READ_LIMITS, type ReadLimits } from '../../reading/limits.ts';
import { type RawLine, splitLines } from '../../reading/lines.ts';
import { withCommas } from '../../vocabulary/values.ts';

export type { RawLine } from '../../reading/lines.ts';

/** The message completes the input's name: "FILE: it is empty". */
export class UnusableInput extends Error {
  readonly code = 'usage';
}

export class Unreachable extends Error {
  readonly code = 'unreachable';
}

/** Bounds the memory and time spent on untrusted input. */
export interface InputLimits extends Pick<ReadLimits, 'lineBytesMax' | 'responseBytesMax'> {
  /** Per chamber. */
  readonly linesMax: number;
  /** Per account. */
  readonly accountLinesMax: number;
  /** A service or RPC that is silent for this long counts as unreachable. */
  readonly timeoutSeconds: number;
  /** How long a failing request is retried. */
  readonly patienceMillis: number;
}

export const INPUT_LIMITS: InputLimits = {
  lineBytesMax: READ_LIMITS.lineBytesMax,
  linesMax: 10_000_000,
  accountLinesMax: 100_000,
  // Lower than a client's limit, because the auditor keeps lines too.
  responseBytesMax: 1.5 * 1024 * 1024,
  timeoutSeconds: 30,
  patienceMillis: 0,
};

/** Throws UnusableInput if a line exceeds the limit. */
export function readLines(
  chunks: AsyncIterable<Uint8Array>,
  limits: Pick<InputLimits, 'lineBytesMax'> = INPUT_LIMITS,
): AsyncGenerator<RawLine, void, undefined> {
  return lineLimited(splitLines(chunks, limits));
}

/** Throws UnusableInput instead of a LimitError. */
export async function* lineLimited(lines: AsyncIterable<RawLine>): AsyncGenerator<RawLine, void, undefined> {
  try {
    yield* lines;
  } catch (error) {
    if (!(error instanceof LimitError)) throw error;
    throw new UnusableInput(`${error.message}: --max-line-bytes allows more`);
  }
}

/** Throws UnusableInput beyond `linesMax`, and names the option that sets it. `before` is the number of lines already read. */
export async function* countLimited(
  lines: AsyncIterable<RawLine>,
  { linesMax, option, before = 0 }: { readonly linesMax: number; readonly option: string; readonly before?: number },
): AsyncGenerator<RawLine, void, undefined> {
  let count = before;
  for await (const line of lines) {
    if (++count > linesMax)
      throw new UnusableInput(`it has more than ${withCommas(linesMax)} lines: ${option} allows more`);
    yield line;
  }
}

/** Few enough that V8 promotes hardly any line to the old generation. */
const AHEAD_LINES_MAX = 128;
const AHEAD_BYTES_MAX = 4 * 1024 * 1024;

/** Starts work on many lines before yielding the first, so that most of a line's work is done when its turn comes. */
export async function* ahead<Started>(
  lines: AsyncIterable<RawLine>,
  start: (line: RawLine) => Started,
): AsyncGenerator<Started, void, undefined> {
  const started: { readonly value: Started; readonly size: number }[] = [];
  let bytes = 0;
  for await (const line of lines) {
    const size = line.bytes.length;
    started.push({ value: start(line), size });
    bytes += size;
    while (started.length > AHEAD_LINES_MAX || bytes > AHEAD_BYTES_MAX) {
      const { value, size } = started.shift() as (typeof started)[number];
      bytes -= size;
      yield value;
    }
  }
  for (const { value } of started) yield value;
}
