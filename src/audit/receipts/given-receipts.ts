// Reads the caller's kept receipts, in the form in which a client keeps them next to its key: a file of lines, or a folder of such
// files.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { keptReceipt, verifyKeptReceipt } from '../../crypto/kept-receipt.ts';
import type { KeptReceipt, ParsedReceipt } from '../../crypto/receipt.ts';
import { parseJson } from '../../vocabulary/json.ts';
import { UnusableInput } from '../line/input.ts';

/** A valid signature by the key in the receipt, whose owner is not known yet. */
export interface GivenReceipt {
  readonly kept: KeptReceipt;
  readonly parsed: ParsedReceipt;
}

export interface GivenReceipts {
  readonly all: readonly GivenReceipt[];
  /** By eventKey, of any log. */
  readonly events: ReadonlySet<string>;
  readonly streams: ReadonlySet<ParsedReceipt['stream']>;
}

export function givenReceipts(all: readonly GivenReceipt[]): GivenReceipts {
  return {
    all,
    events: new Set(all.map(({ parsed }) => eventKey(parsed))),
    streams: new Set(all.map(({ parsed }) => parsed.stream)),
  };
}

export function eventKey({ stream, eventId }: Pick<ParsedReceipt, 'stream' | 'eventId'>): string {
  return `${stream} ${eventId}`;
}

/** Throws UnusableInput for a receipt with an invalid signature, which would prove nothing. */
export function readReceipts(path: string): GivenReceipts {
  try {
    return givenReceipts(filesIn(path).flatMap(readFile));
  } catch (error) {
    if (error instanceof UnusableInput) throw error;
    throw new UnusableInput((error as Error).message);
  }
}

/** All files regardless of their names, so that no promise is overlooked. */
function filesIn(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && !OF_SYSTEM.has(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
}

/** Files of file managers. */
const OF_SYSTEM: ReadonlySet<string> = new Set(['.DS_Store', 'Thumbs.db', 'desktop.ini']);

function readFile(path: string): readonly GivenReceipt[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  const last = lines.pop() ?? '';
  // After the last line break is nothing, a line that a crash cut off, or one whose line break a tool removed.
  const complete = isJson(last) ? [...lines, last] : lines;
  return complete.map((line, index) => {
    try {
      const kept = v.parse(keptReceipt, parseJson(lastOf(line)));
      return { kept, parsed: verifyKeptReceipt(kept) };
    } catch (error) {
      throw new UnusableInput(`line ${index + 1} of ${path} is not a receipt: ${(error as Error).message}`);
    }
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Each kept receipt begins with this text. Inside a string its quotes would be escaped. */
const BEGINNING = '{"request":';

/** Earlier releases appended a receipt to the same line after one that a crash had cut off. */
function lastOf(line: string): string {
  return line.slice(Math.max(0, line.lastIndexOf(BEGINNING)));
}
