// The receipts that the caller of an audit has kept, as a client keeps them next to its key: a file of lines, or a folder of such files.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { keptReceipt, verifyKeptReceipt } from '../../crypto/kept-receipt.ts';
import type { KeptReceipt, ParsedReceipt } from '../../crypto/receipt.ts';
import { parseJson } from '../../vocabulary/json.ts';
import { UnusableInput } from '../line/input.ts';

/** The key that it is kept with has signed it; whose key that is, is not known yet. */
export interface GivenReceipt {
  readonly kept: KeptReceipt;
  readonly parsed: ParsedReceipt;
}

export interface GivenReceipts {
  readonly all: readonly GivenReceipt[];
  /** The events that they are of, of whichever log: see eventKey. */
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

/** Throws UnusableInput for a receipt that its key has not signed as it is: what was changed proves nothing. */
export function readReceipts(path: string): GivenReceipts {
  try {
    return givenReceipts(filesIn(path).flatMap(readFile));
  } catch (error) {
    if (error instanceof UnusableInput) throw error;
    throw new UnusableInput((error as Error).message);
  }
}

/** All files of a folder, whatever their names: one that is left out would promise nothing. */
function filesIn(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && !OF_SYSTEM.has(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
}

/** What file managers leave behind. */
const OF_SYSTEM: ReadonlySet<string> = new Set(['.DS_Store', 'Thumbs.db', 'desktop.ini']);

function readFile(path: string): readonly GivenReceipt[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  const last = lines.pop() ?? '';
  // What follows the last line break is empty, a line that a crash has cut off, or one whose line break a tool has removed.
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

/** Every receipt that a client keeps begins with it. A text inside has its quotes escaped, so that it can't hold this. */
const BEGINNING = '{"request":';

/** What an earlier release appended to a receipt that a crash had cut off is on the same line, behind it. */
function lastOf(line: string): string {
  return line.slice(Math.max(0, line.lastIndexOf(BEGINNING)));
}
