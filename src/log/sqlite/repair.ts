// Repairs a database while no service runs on it: makes the derived tables and the index from the events, all or nothing.
import type { Database } from 'better-sqlite3';
import { type ChamberState, evolveChamber } from '../../../projections/chamber.ts';
import { listingsOf } from '../../../projections/listings.ts';
import { type ChamberEvent, fromLine } from '../../vocabulary/events.ts';
import type { StreamId } from '../log.ts';
import { type DatabaseFile, openDatabaseFile, reasonOf } from './database-file.ts';
import { indexEverything } from './event-index.ts';
import { Listings } from './listings.ts';
import { DERIVED, DERIVED_TABLES, INDEX_TABLES, INDEXES } from './schema.ts';
import { chamberEvents, openReader, type StoredEvent } from './stored-events.ts';

export interface RebuildSummary {
  readonly chambers: number;
  readonly ideas: number;
}

/** Throws if a line cannot be folded or a service holds the file. */
export function rebuildDatabase(path: string): RebuildSummary {
  return inTransaction(path, (target, source) => {
    for (const table of [...DERIVED_TABLES, ...INDEX_TABLES]) target.exec(`DROP TABLE IF EXISTS ${table}`);
    target.exec(DERIVED + INDEXES);
    indexEverything(target);
    requireConsecutive(target);
    derive(chamberEvents(source), new Listings(target));
    return { chambers: count(target, 'chambers'), ideas: count(target, 'ideas') };
  });
}

/** The reader opens first: it makes no file that is missing, and says why if the file is not ours. */
function inTransaction<Result>(path: string, work: (target: Database, source: Database) => Result): Result {
  const source = openReader(path);
  let file: DatabaseFile | undefined;
  try {
    file = openDatabaseFile(path);
    const { db } = file;
    return db.transaction(() => work(db, source)).immediate();
  } finally {
    source.close();
    file?.close();
  }
}

/** An index over gaps and repetitions would hide them. */
function requireConsecutive(db: Database): void {
  const broken = db.prepare<[], StreamId | null>(
    `SELECT stream FROM (
       SELECT coalesce(chamber_id, account) AS stream, event_id FROM events
     ) GROUP BY stream HAVING min(event_id) <> 1 OR max(event_id) <> count(*) OR count(*) <> count(DISTINCT event_id) LIMIT 1`,
  );
  const stream = broken.pluck().get();
  if (stream === undefined) return;
  throw new Error(`the events of ${stream} are not consecutive: chambers fsck reports the damage`);
}

/** Folds one chamber after another, so that one state is in memory at a time. */
function derive(events: Iterable<StoredEvent>, listings: Listings): void {
  let state: ChamberState | null = null;
  for (const { chamber_id, event_id, line } of events) {
    if (state?.chamberId !== chamber_id) state = null;
    try {
      const event = fromLine(line.toString()) as ChamberEvent;
      const before: ChamberState | null = state;
      state = evolveChamber(before, event);
      for (const listing of listingsOf(before, state)) listings.write(listing);
    } catch (error) {
      throw new Error(`event ${event_id} of chamber ${chamber_id} cannot be folded: ${reasonOf(error)}`, {
        cause: error,
      });
    }
  }
}

function count(db: Database, table: (typeof DERIVED_TABLES)[number]): number {
  return db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;
}
