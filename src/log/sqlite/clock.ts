// The latest time that the log has shown: it never falls, also not over a restart.
import type { Database } from 'better-sqlite3';
import { instantOf, type Millis } from '../../vocabulary/values.ts';
import { CLOCK_HIGH_WATER_MARK, CLOCK_RESET, type ClockReset, parseReset } from '../clock-reset.ts';

/** The last millisecond of a year of four digits. */
const TIME_MAX: Millis = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** The later of the newest event's `ts`, unless a reset was after it, and the persisted clock; 0 in an empty log. Throws if either is not a time. */
export function readClock(db: Database): Millis {
  const query = 'SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM meta WHERE name = ?';
  const persisted = db.prepare<[string], number>(query).pluck().get(CLOCK_HIGH_WATER_MARK);
  if (persisted !== undefined && persisted > TIME_MAX)
    throw new Error('the persisted clock is not a time: restore a backup');
  const newestAt = newestEventAt(db);
  return Math.max(persisted ?? 0, newestAt > readReset(db).from ? newestAt : 0);
}

export function readReset(db: Database): ClockReset {
  return parseReset(db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get(CLOCK_RESET));
}

function newestEventAt(db: Database): Millis {
  const newest = db.prepare<[], string>(
    `SELECT iif(json_valid(line), json_extract(line, '$.ts'), '') FROM events
     WHERE position = (SELECT max(position) FROM events)`,
  );
  const ts = newest.pluck().get();
  if (ts === undefined) return 0;
  const at = instantOf(ts ?? '');
  if (!(at <= TIME_MAX)) throw new Error('the newest event has no timestamp: chambers fsck reports the damage');
  return at;
}
