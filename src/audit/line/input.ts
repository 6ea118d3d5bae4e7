// Lines of hostile input, one at a time, so that a log of any length passes through in flat memory; and the errors of input
// that can't be audited at all, as opposed to a log that is broken.
import { LimitError, READ_LIMITS, type ReadLimits } from '../../reading/limits.ts';
import { type RawLine, splitLines } from '../../reading/lines.ts';
import { withCommas } from '../../vocabulary/values.ts';

export type { RawLine } from '../../reading/lines.ts';

/** The message ends a sentence that begins with the name of the input: "FILE: it is empty". */
export class UnusableInput extends Error {
  readonly code = 'usage';
}

export class Unreachable extends Error {
  readonly code = 'unreachable';
}

/** What hostile input can take of memory and time. */
export interface InputLimits extends Pick<ReadLimits, 'lineBytesMax' | 'responseBytesMax'> {
  /** The lines of a chamber. */
  readonly linesMax: number;
  /** The lines of an agent’s account. */
  readonly accountLinesMax: number;
  /** A service or a chain that is silent for so long counts as unreachable. */
  readonly timeoutSeconds: number;
  /** How long a request is repeated while the service can't be reached. */
  readonly patienceMillis: number;
}

export const INPUT_LIMITS: InputLimits = {
  lineBytesMax: READ_LIMITS.lineBytesMax,
  linesMax: 10_000_000,
  accountLinesMax: 100_000,
  // Less than a client: the auditor keeps lines as well.
  responseBytesMax: 1.5 * 1024 * 1024,
  timeoutSeconds: 30,
  patienceMillis: 0,
};

/** Throws UnusableInput on a line that is too long for any chamber's log. */
export function readLines(
  chunks: AsyncIterable<Uint8Array>,
  limits: Pick<InputLimits, 'lineBytesMax'> = INPUT_LIMITS,
): AsyncGenerator<RawLine, void, undefined> {
  return lineLimited(splitLines(chunks, limits));
}

/** The lines; throws UnusableInput instead of a LimitError. */
export async function* lineLimited(lines: AsyncIterable<RawLine>): AsyncGenerator<RawLine, void, undefined> {
  try {
    yield* lines;
  } catch (error) {
    if (!(error instanceof LimitError)) throw error;
    throw new UnusableInput(`${error.message}: --max-line-bytes allows more`);
  }
}

/** The lines, which come after `before` others; throws UnusableInput beyond the limit, which the option sets. */
export async function* countLimited(
  lines: AsyncIterable<RawLine>,
  { linesMax, option, before = 0 }: { readonly linesMax: number; readonly option: string; readonly before?: number },
): AsyncGenerator<RawLine, void, undefined> {
  let count = before;
  for await (const line of lines) {
    if (++count > linesMax)
      throw new UnusableInput(`it holds more than ${withCommas(linesMax)} lines: ${option} allows more`);
    yield line;
  }
}
