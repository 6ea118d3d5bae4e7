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
}

export function eventKey({ stream, eventId }: Pick<ParsedReceipt, 'stream' | 'eventId'>): string {
  return `${stream} ${eventId}`;
}

/** Throws UnusableInput for a receipt that its key has not signed as it is: what was changed proves nothing. */
export function readReceipts(path: string): GivenReceipts {
  try {
    const all = filesIn(path).flatMap(readFile);
    return { all, events: new Set(all.map(({ parsed }) => eventKey(parsed))) };
  } catch (error) {
    if (error instanceof UnusableInput) throw error;
    throw new UnusableInput((error as Error).message);
  }
}

function filesIn(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ndjson'))
    .sort()
    .map((name) => join(path, name));
}

function readFile(path: string): readonly GivenReceipt[] {
  // What follows the last line break is empty, or a line that a crash has cut off.
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line, index) => {
    try {
      const kept = v.parse(keptReceipt, parseJson(line));
      return { kept, parsed: verifyKeptReceipt(kept) };
    } catch (error) {
      throw new UnusableInput(`line ${index + 1} of ${path} is not a receipt: ${(error as Error).message}`);
    }
  });
}
