// Makes the derived tables anew from the log, while no service runs on the file. The events are not touched.
import type { Database } from 'better-sqlite3';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { listingsOf } from '../../projections/listings.ts';
import { type ChamberEvent, fromLine } from '../vocabulary/events.ts';
import { indexEverything } from './event-index.ts';
import { Listings } from './listings.ts';
import type { StreamId } from './log.ts';
import { DERIVED, DERIVED_TABLES, INDEX_TABLES, INDEXES } from './schema.ts';
import { openDatabase } from './sqlite-log.ts';
import { chamberEvents, openReader, type StoredEvent } from './stored-events.ts';
import { lockWriter } from './writer-lock.ts';

export interface RebuildSummary {
  readonly chambers: number;
  readonly ideas: number;
}

/** All or nothing: throws, with the tables as they were, when a line cannot be folded or a service holds the file. */
export function rebuildDatabase(path: string): RebuildSummary {
  const source = openReader(path);
  try {
    const unlock = lockWriter(path);
    try {
      return rewrite(path, source);
    } finally {
      unlock();
    }
  } finally {
    source.close();
  }
}

function rewrite(path: string, source: Database): RebuildSummary {
  const target = openDatabase(path);
  try {
    return target.transaction(() => {
      for (const table of [...DERIVED_TABLES, ...INDEX_TABLES]) target.exec(`DROP TABLE IF EXISTS ${table}`);
      target.exec(DERIVED + INDEXES);
      indexEverything(target);
      requireWhole(target);
      derive(chamberEvents(source), new Listings(target));
      return { chambers: count(target, 'chambers'), ideas: count(target, 'ideas') };
    })();
  } finally {
    target.close();
  }
}

/** An index over gaps and repetitions would hide them. */
function requireWhole(db: Database): void {
  const torn = db.prepare<[], StreamId | null>(
    `SELECT stream FROM (
       SELECT coalesce(chamber_id, account) AS stream, event_id FROM events
     ) GROUP BY stream HAVING min(event_id) <> 1 OR max(event_id) <> count(*) OR count(*) <> count(DISTINCT event_id) LIMIT 1`,
  );
  const stream = torn.pluck().get();
  if (stream !== undefined)
    throw new Error(`the events of ${stream} do not follow on one another: chambers fsck says more`);
}

/** Folds chamber after chamber: one state is in memory at a time. */
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
      const reason = error instanceof Error ? error.message : error;
      throw new Error(`event ${event_id} of chamber ${chamber_id} cannot be folded: ${reason}`, { cause: error });
    }
  }
}

function count(db: Database, table: (typeof DERIVED_TABLES)[number]): number {
  return db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;
}
