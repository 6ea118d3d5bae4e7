// The published tree as a database file holds it, read by programs other than the service.
import type { Database } from 'better-sqlite3';
import type { TileRef } from '../../tlog/tiled-tree.ts';
import { type StoredCheckpoint, storedLevel } from '../published-tree.ts';
import type { PositionedEvent } from './stored-events.ts';

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
