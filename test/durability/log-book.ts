// What a database file holds, read while the service runs.

import { DERIVED_TABLES } from '../../src/log/derived-tables.ts';
import { fsckDatabase } from '../../src/log/sqlite/fsck.ts';
import { openReader } from '../../src/log/sqlite/reader.ts';
import { eventsByStream } from '../../src/log/sqlite/stored-events.ts';
import type { Fault } from '../../src/log/stored-stream.ts';
import { type ForumEvent, fromLine, toLine } from '../../src/vocabulary/events.ts';
import type { Stream } from '../forum/simulation/history.ts';

/** The lines of each stream. */
export function readLines(path: string): ReadonlyMap<Stream, readonly string[]> {
  const lines = new Map<Stream, string[]>();
  for (const event of readEvents(path)) {
    const stream = event.chamberId ?? (event.did as string);
    const before = lines.get(stream);
    if (before === undefined) lines.set(stream, [toLine(event)]);
    else before.push(toLine(event));
  }
  return lines;
}

/** The events by the Signature header of their requests; a signature that is in the log twice throws. */
export function eventsBySignature(path: string): ReadonlyMap<string, ForumEvent> {
  const events = new Map<string, ForumEvent>();
  for (const event of readEvents(path)) {
    const signature = event.request?.signature;
    if (signature === undefined) continue;
    if (events.has(signature)) throw new Error(`a signature is in the log twice: ${signature}`);
    events.set(signature, event);
  }
  return events;
}

export function readEvents(path: string): readonly ForumEvent[] {
  const db = openReader(path);
  try {
    const stored = [...eventsByStream(db, 'chamber_id'), ...eventsByStream(db, 'account')];
    return stored.map(({ line }) => fromLine(line.toString()));
  } finally {
    db.close();
  }
}

/** What fsck finds. */
export function faultsOf(path: string): readonly Fault[] {
  const faults: Fault[] = [];
  fsckDatabase(path, (fault) => faults.push(fault));
  return faults;
}

/** All rows of the derived tables. */
export function derivedRows(path: string): readonly unknown[] {
  const db = openReader(path);
  try {
    return DERIVED_TABLES.map((table) => db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all());
  } finally {
    db.close();
  }
}
