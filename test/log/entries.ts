// Entries for the log itself: lines of the right form, whatever they say.
import { randomBytes } from 'node:crypto';
import Database from 'better-sqlite3';
import type { LogEntry, StreamId } from '../../src/log/log.ts';
import { atEnd } from '../kit/temporary.ts';

export function entry(stream: StreamId, eventId: number, changes: Partial<LogEntry> = {}): LogEntry {
  const ts = new Date(eventId).toISOString();
  const chamberId = typeof stream === 'number' ? stream : null;
  const line = Buffer.from(JSON.stringify({ chamberId, eventId, ts }));
  const usual = {
    at: eventId,
    line,
    signature: randomBytes(72).toString('latin1'),
    nodes: randomBytes(32),
    listings: [],
  };
  return { stream, eventId, ...usual, ...changes };
}

/** Another program's connection: it has not asked for recursive triggers. */
export function intrude(path: string): Database.Database {
  const db = new Database(path);
  atEnd(() => void db.close());
  return db;
}
