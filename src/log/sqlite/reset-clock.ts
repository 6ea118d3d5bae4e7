// Resets the time of a log in a file to the true one, while no service runs on it.
import type { Database } from 'better-sqlite3';
import { instantOf, type Millis, toTimestamp } from '../../vocabulary/values.ts';
import { CLOCK_RESET, type ClockReset, resetOf, type WaitingStream } from '../clock-reset.ts';
import type { StreamId } from '../stream-id.ts';
import { fillPhases } from './chamber-phases.ts';
import { CLOCK_HIGH_WATER_MARK, readClock } from './clock.ts';
import { openDatabaseFile } from './database-file.ts';
import { openReader } from './reader.ts';

/** Throws an Error of one line if the log's time is not in the future, or another program uses the file. */
export function resetFileClock(path: string, now: Millis = Date.now()): ClockReset {
  // The reader makes no file that is missing.
  openReader(path).close();
  const file = openDatabaseFile(path);
  const { db } = file;
  try {
    const reset = resetOf({ lastAt: readClock(db), waiting: streamsAfter(db, now) }, now);
    const write = db.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)');
    db.transaction(() => {
      write.run(CLOCK_RESET, JSON.stringify(reset));
      write.run(CLOCK_HIGH_WATER_MARK, String(now));
      fillPhases(db);
    }).immediate();
    return reset;
  } finally {
    file.close();
  }
}

/** Reads every line: no index has the times, and a log is rarely reset. */
function streamsAfter(db: Database, now: Millis): readonly WaitingStream[] {
  const heads = db.prepare<[string], { readonly stream: StreamId; readonly ts: string }>(
    `SELECT coalesce(chamber_id, account) AS stream, max(iif(json_valid(line), json_extract(line, '$.ts'), '')) AS ts
     FROM events GROUP BY chamber_id, account HAVING ts > ? ORDER BY ts`,
  );
  return heads.all(toTimestamp(now)).map(({ stream, ts }) => ({ stream, until: instantOf(ts) }));
}
