// What only a file can have wrong: its pages, and the order of its lines, which one process wrote one after another.
import type { Database } from 'better-sqlite3';
import { toStream } from '../sql/stored-line.ts';
import type { Fault } from '../stored-stream.ts';

/** Name in `meta` of the last position that was copied from a log whose events had no order of time. */
export const COPIED_THROUGH = 'copied_through';

export function checkFile(db: Database, copiedThrough: number, report: (fault: Fault) => void): void {
  const rows = db.pragma('integrity_check') as readonly { readonly integrity_check: string }[];
  for (const { integrity_check: problem } of rows) {
    if (problem === 'ok') continue;
    report({ position: null, stream: null, eventId: null, problem: `the file is damaged: ${problem.trim()}` });
  }
  const fault = firstOutOfOrder(db, copiedThrough);
  if (fault !== undefined) report(fault);
}

interface OrderedRow {
  readonly position: number;
  readonly stream: string | number;
  readonly event_id: number;
  readonly at: number | null;
}

function firstOutOfOrder(db: Database, copiedThrough: number): Fault | undefined {
  const query = 'SELECT position, stream, event_id, at FROM events ORDER BY position';
  let expected = 1;
  let latest = 0;
  for (const { position, stream, event_id: eventId, at } of db.prepare<[], OrderedRow>(query).iterate()) {
    const event = { position, stream: toStream(stream), eventId };
    if (position !== expected) return { ...event, problem: `its position is ${position}, not ${expected}` };
    const isLater = at === null || at >= latest || position <= copiedThrough;
    if (!isLater) return { ...event, problem: 'ts is earlier than that of an earlier event' };
    latest = at ?? latest;
    expected++;
  }
  return undefined;
}
