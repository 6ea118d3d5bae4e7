// Lines of hostile input, one at a time, so that a log of any length passes through in flat memory; and the errors of input
// that can't be audited at all, as opposed to a log that is broken.
import { concatBytes } from '@noble/hashes/utils.js';

/** The message ends a sentence that begins with the name of the input: "FILE: it is empty". */
export class UnusableInput extends Error {
  readonly code = 'usage';
}

export class Unreachable extends Error {
  readonly code = 'unreachable';
}

export interface RawLine {
  /** Without the line break. */
  readonly bytes: Uint8Array;
  /** Whether a line break ended it; the last line of a file may be torn. */
  readonly isEnded: boolean;
}

/** What hostile input can take of memory and time. */
export interface InputLimits {
  /** Far above any line that a service with default limits writes. */
  readonly lineBytesMax: number;
  /** Of a chamber. */
  readonly linesMax: number;
  /** Of an agent’s account. */
  readonly accountLinesMax: number;
  /** Of a response other than lines. */
  readonly responseBytesMax: number;
  /** A service or a chain that is silent for so long counts as unreachable. */
  readonly timeoutSeconds: number;
}

export const INPUT_LIMITS: InputLimits = {
  lineBytesMax: 16 * 1024 * 1024,
  linesMax: 10_000_000,
  accountLinesMax: 100_000,
  responseBytesMax: 64 * 1024 * 1024,
  timeoutSeconds: 30,
};

const LINE_BREAK = 0x0a;

/** Throws UnusableInput on a line that is too long for any chamber's log. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  { lineBytesMax }: Pick<InputLimits, 'lineBytesMax'> = INPUT_LIMITS,
): AsyncGenerator<RawLine, void, undefined> {
  let parts: Uint8Array[] = [];
  let partsBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_BREAK); end !== -1; end = chunk.indexOf(LINE_BREAK, start)) {
      const rest = chunk.subarray(start, end);
      yield { bytes: parts.length === 0 ? rest : concatBytes(...parts, rest), isEnded: true };
      parts = [];
      partsBytes = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    partsBytes += chunk.length - start;
    if (partsBytes > lineBytesMax)
      throw new UnusableInput(
        `it holds a line of more than ${count(lineBytesMax)} bytes: --max-line-bytes allows more`,
      );
  }
  if (partsBytes > 0) yield { bytes: concatBytes(...parts), isEnded: false };
}

/** Throws UnusableInput beyond the limit. */
export function requireLines(lines: number, linesMax: number, option: string): void {
  if (lines > linesMax) throw new UnusableInput(`it holds more than ${count(linesMax)} lines: ${option} allows more`);
}

export function count(number: number): string {
  return number.toLocaleString('en');
}
