// Detects changes that tools make to a copy of a log: Windows line breaks, a byte order mark, another encoding, compression. Each is
// reported once, and the restored lines are checked as usual.

const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const FORMATS: readonly (readonly [start: readonly number[], name: string])[] = [
  [[0xff, 0xfe], 'UTF-16 text, not UTF-8'],
  [[0xfe, 0xff], 'UTF-16 text, not UTF-8'],
  [[0x1f, 0x8b], 'compressed with gzip'],
  [[0x50, 0x4b, 0x03, 0x04], 'a zip archive'],
];

/** Recognises input that is not UTF-8 text by its first bytes; returns the format's name. */
export function foreignFormat(bytes: Uint8Array): string | undefined {
  return FORMATS.find(([start]) => startsWith(bytes, start))?.[1];
}

export class CopyCheck {
  #lineCount = 0;
  #isConverted = false;

  /** Restores the next line. Consecutive lines that end with a carriage return count as one problem. */
  restore(bytes: Uint8Array): { readonly bytes: Uint8Array; readonly problem: string | undefined } {
    this.#lineCount++;
    const hasMark = this.#lineCount === 1 && startsWith(bytes, BYTE_ORDER_MARK);
    const wasConverted = this.#isConverted;
    this.#isConverted = bytes.at(-1) === CARRIAGE_RETURN;
    const problems: string[] = [];
    if (hasMark) problems.push('begins with a byte order mark');
    if (this.#isConverted && !wasConverted) {
      problems.push(`has Windows line breaks (CRLF), first after line ${this.#lineCount}`);
    }
    return {
      bytes: bytes.subarray(hasMark ? BYTE_ORDER_MARK.length : 0, bytes.length - (this.#isConverted ? 1 : 0)),
      problem: problems.length === 0 ? undefined : problems.join(' and '),
    };
  }
}

function startsWith(bytes: Uint8Array, start: readonly number[]): boolean {
  return start.every((byte, index) => bytes[index] === byte);
}
