// Reads a database while the service runs.
import { readWholeLog, writeWholeLog } from '../../src/log/open-log.ts';
import { fsck } from '../../src/log/sql/fsck.ts';
import { rebuild } from '../../src/log/sql/maintenance.ts';
import { DERIVED_TABLES } from '../../src/log/sql/tables.ts';
import { openReader } from '../../src/log/sqlite/reader.ts';
import type { Fault, FsckSummary } from '../../src/log/stored-stream.ts';
import { type ForumEvent, fromLine, toLine } from '../../src/vocabulary/events.ts';
import type { Stream } from '../forum/simulation/history.ts';

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

/** Returns the events by the Signature header of their requests. Throws if the log has a duplicate signature. */
export function eventsBySignature(path: string): ReadonlyMap<string, ForumEvent> {
  const events = new Map<string, ForumEvent>();
  for (const event of readEvents(path)) {
    const signature = event.request?.signature;
    if (signature === undefined) continue;
    if (events.has(signature)) throw new Error(`the log has a duplicate signature: ${signature}`);
    events.set(signature, event);
  }
  return events;
}

export function readEvents(path: string): readonly ForumEvent[] {
  const db = openReader(path);
  try {
    const lines = db.prepare<[], string>('SELECT line FROM events ORDER BY chamber_id, account, event_id').pluck();
    return lines.all().map(fromLine);
  } finally {
    db.close();
  }
}

/** Returns the faults that fsck finds in a file or in the database at a URL. */
export async function faultsOf(place: string): Promise<readonly Fault[]> {
  const faults: Fault[] = [];
  await fsckLog(place, (fault) => faults.push(fault));
  return faults;
}

export function fsckLog(place: string, report: (fault: Fault) => void = () => {}): Promise<FsckSummary> {
  return readWholeLog(place, (log) => fsck(log, report));
}

export function rebuildLog(place: string) {
  return writeWholeLog(place, rebuild);
}

/** Returns all rows of the derived tables. */
export function derivedRows(path: string): readonly unknown[] {
  const db = openReader(path);
  try {
    return DERIVED_TABLES.map((table) => db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all());
  } finally {
    db.close();
  }
}
