// The events and the published tree as a database file holds them, without the index, which is not trusted.
import type { Database } from 'better-sqlite3';
import type { TileRef } from '../../tlog/tiled-tree.ts';
import { type StoredCheckpoint, storedLevel } from '../published-tree.ts';
import type { StoredEvent } from '../stored-stream.ts';

/** Name in `meta` of the last position that was copied from a log whose events had no order of time. */
export const COPIED_THROUGH = 'copied_through';

export interface PositionedEvent extends StoredEvent {
  readonly position: number;
}

/** The positions of all events of chambers, or of accounts, one stream after another. Other tables may be written meanwhile. */
export function* positionsByStream(db: Database, stream: 'chamber_id' | 'account'): Generator<number> {
  const positions = db.prepare<[], number>(
    `SELECT position FROM events WHERE ${stream} IS NOT NULL ORDER BY ${stream}, event_id, position`,
  );
  db.unsafeMode(true);
  try {
    yield* positions.pluck().iterate();
  } finally {
    db.unsafeMode(false);
  }
}

/** Their events. Only the numbers are sorted, not the lines. */
export function* eventsByStream(db: Database, stream: 'chamber_id' | 'account'): Generator<PositionedEvent> {
  const event = db.prepare<[number], PositionedEvent>(
    `SELECT position, chamber_id, account, event_id, CAST(line AS BLOB) AS line, signature, nodes
     FROM events WHERE position = ?`,
  );
  for (const position of positionsByStream(db, stream)) yield event.get(position) as PositionedEvent;
}

export function storedCheckpoint(db: Database, logId: string): StoredCheckpoint | undefined {
  return db.prepare<[string], StoredCheckpoint>('SELECT size, note FROM checkpoints WHERE log_id = ?').get(logId);
}

/** The first `size` lines of the log, in the order of their places. */
export function publishedLines(db: Database, size: number): IterableIterator<Pick<PositionedEvent, 'line'>> {
  const query = 'SELECT CAST(line AS BLOB) AS line FROM events WHERE position <= ? ORDER BY position';
  return db.prepare<[number], Pick<PositionedEvent, 'line'>>(query).iterate(size);
}

export function storedTile(db: Database): (tile: TileRef) => Buffer | undefined {
  const find = db.prepare<[number, number], Buffer>('SELECT hashes FROM tiles WHERE level = ? AND tile = ?').pluck();
  return (tile) => find.get(storedLevel(tile), tile.index);
}
