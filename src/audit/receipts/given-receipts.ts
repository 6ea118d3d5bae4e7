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

export class GivenReceipts {
  readonly all: readonly GivenReceipt[];
  readonly #byEvent = new Map<string, GivenReceipt[]>();

  constructor(all: readonly GivenReceipt[]) {
    this.all = all;
    for (const given of all) {
      const key = keyOf(given.parsed);
      const others = this.#byEvent.get(key);
      if (others === undefined) this.#byEvent.set(key, [given]);
      else others.push(given);
    }
  }

  /** Those of one event, of whichever log. */
  of(stream: number | string, eventId: number): readonly GivenReceipt[] {
    return this.#byEvent.get(keyOf({ stream, eventId })) ?? [];
  }
}

function keyOf({ stream, eventId }: Pick<ParsedReceipt, 'stream' | 'eventId'>): string {
  return `${stream} ${eventId}`;
}

/** Throws UnusableInput for a receipt that its key has not signed as it is: what was changed proves nothing. */
export function readReceipts(path: string): GivenReceipts {
  try {
    return new GivenReceipts(filesIn(path).flatMap(readFile));
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
