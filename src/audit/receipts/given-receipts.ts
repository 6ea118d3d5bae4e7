// Reads the caller's kept receipts in the client's format: a file with one receipt per line, or a folder of such files.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { keptReceipt, verifyKeptReceipt } from '../../crypto/kept-receipt.ts';
import type { KeptReceipt, ParsedReceipt } from '../../crypto/receipt.ts';
import { parseJson } from '../../vocabulary/json.ts';
import { UnusableInput } from '../line/input.ts';

/** A receipt with a valid signature by the key that it names. Whether the key is the service's is not known yet. */
export interface GivenReceipt {
  readonly kept: KeptReceipt;
  readonly parsed: ParsedReceipt;
}

export interface GivenReceipts {
  readonly all: readonly GivenReceipt[];
  /** The eventKey of each receipt, regardless of its log. */
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

/** Throws UnusableInput if a receipt is malformed or its signature is invalid. */
export function readReceipts(path: string): GivenReceipts {
  try {
    return givenReceipts(filesIn(path).flatMap(readFile));
  } catch (error) {
    if (error instanceof UnusableInput) throw error;
    throw new UnusableInput((error as Error).message);
  }
}

/** Returns all files regardless of their names, so that no receipt is overlooked. */
function filesIn(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && !FILE_MANAGER_FILES.has(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
}

/** Files that file managers create. */
const FILE_MANAGER_FILES: ReadonlySet<string> = new Set(['.DS_Store', 'Thumbs.db', 'desktop.ini']);

function readFile(path: string): readonly GivenReceipt[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  const last = lines.pop() ?? '';
  // The text after the last line break is empty, a line that a crash cut off, or a line whose line break a tool removed.
  const complete = isJson(last) ? [...lines, last] : lines;
  return complete.map((line, index) => {
    try {
      const kept = v.parse(keptReceipt, parseJson(lastReceipt(line)));
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

/** Every kept receipt begins with this text, which can't occur inside a JSON string because its quotes would be escaped. */
const RECEIPT_START = '{"request":';

/** Returns the last receipt of a line: after a crash, earlier releases appended to the line that was cut off. */
function lastReceipt(line: string): string {
  return line.slice(Math.max(0, line.lastIndexOf(RECEIPT_START)));
}
