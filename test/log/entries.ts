// Log entries for tests of the store; their lines are well-formed, but their content is arbitrary.
import { randomBytes } from 'node:crypto';
import Database from 'better-sqlite3';
import type { ChamberListing } from '../../projections/listings.ts';
import { leafHash } from '../../src/crypto/merkle.ts';
import type { AppendResult, LogEntry } from '../../src/log/log.ts';
import { openSqliteStore, type SqliteStoreOptions } from '../../src/log/sqlite/store.ts';
import type { Store } from '../../src/log/store.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import { type ForumEvent, toLine } from '../../src/vocabulary/events.ts';
import { NO_PREVIOUS } from '../../src/vocabulary/values.ts';
import { atEnd } from '../kit/temporary.ts';

/** The store is closed at the end of the test. */
export function openLog(path = ':memory:', options: SqliteStoreOptions = {}): Store {
  const store = openSqliteStore(path, options);
  atEnd(() => store.close());
  return store;
}

export const NONE: AppendResult = { conflicts: new Map(), found: new Map() };

export function report(...conflicts: readonly (readonly [StreamId, number])[]): AppendResult {
  return { ...NONE, conflicts: new Map(conflicts) };
}

export function entry(stream: StreamId, eventId: number, changes: Partial<LogEntry> = {}): LogEntry {
  const ts = new Date(eventId).toISOString();
  const chamberId = typeof stream === 'number' ? stream : null;
  const did = typeof stream === 'string' ? stream : null;
  const event = { chamberId, did, eventId, payload: {}, prev: NO_PREVIOUS, request: null, ts, type: 'test' };
  const line = changes.line ?? Buffer.from(toLine(event as unknown as ForumEvent));
  const usual = {
    at: eventId,
    line,
    signature: randomBytes(72).toString('latin1'),
    nodes: leafHash(line),
    listings: [],
  };
  return { stream, eventId, ...usual, ...changes };
}

/** Returns a new key whose leading seconds are those of the present. */
export function newSignatureKey(): string {
  const second = Buffer.alloc(8);
  second.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 1_000)));
  return Buffer.concat([second, randomBytes(64)]).toString('latin1');
}

/** The creation of a chamber, with its derived row. */
export function created(chamberId: number): LogEntry {
  return entry(chamberId, 1, { listings: [listing(chamberId)] });
}

export function listing(chamberId: number, changes: Partial<ChamberListing> = {}): ChamberListing {
  const usual = {
    kind: 'chamber',
    name: `Chamber ${chamberId}`,
    creatorDid: 'did:key:zAnn',
    memberCount: 0,
    turnSeconds: null,
    maxMembers: null,
    minMembers: null,
  } as const;
  const latest = {
    deadlines: deadlines(chamberId),
    ends: deadlines(chamberId),
    rounds: null,
    movesPerTurn: null,
    isRestricted: false,
  };
  return { ...usual, chamberId, ...latest, isCommitted: false, isSettled: false, ...changes };
}

export function deadlines(step: number): ChamberListing['deadlines'] {
  return {
    lobbyDeadline: 2 * step,
    proposalDeadline: 3 * step,
    debateDeadline: 3 * step + (step % 3),
    allocateCommitDeadline: 5 * step,
    allocateRevealDeadline: 6 * step,
  };
}

/** Opens a connection of another program, without recursive triggers. */
export function foreignConnection(path: string): Database.Database {
  const db = new Database(path);
  atEnd(() => void db.close());
  return db;
}

/** Executes SQL as a program that drops the triggers first. */
export function tamper(path: string, sql: string): void {
  const db = new Database(path);
  dropTriggers(db);
  db.exec(sql);
  db.close();
}

export function dropTriggers(db: Database.Database): void {
  for (const name of ['update', 'delete', 'replace']) db.exec(`DROP TRIGGER IF EXISTS events_refuse_${name}`);
}

/** Converts the file to schema 7, in which the index of events is a table. */
export function asSchema7(path: string): void {
  const db = new Database(path);
  db.exec(`
    DROP TRIGGER events_refuse_update; DROP TRIGGER events_refuse_delete; DROP TRIGGER events_refuse_replace;
    CREATE TABLE stream_events (stream ANY NOT NULL, event_id INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (stream, event_id))
      STRICT, WITHOUT ROWID;
    INSERT INTO stream_events SELECT coalesce(chamber_id, account), event_id, position FROM events;
    CREATE TABLE signatures (prefix BLOB NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (prefix, position)) STRICT, WITHOUT ROWID;
    INSERT INTO signatures SELECT substr(signature, 5, 8), position FROM events WHERE signature IS NOT NULL;
    INSERT INTO meta SELECT 'indexed_through', max(position) FROM events;
    DROP INDEX events_by_stream; DROP INDEX events_by_signature;
    ALTER TABLE events DROP COLUMN stream;
    CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'append-only'); END;
    CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'append-only'); END;
    CREATE TRIGGER events_refuse_replace BEFORE INSERT ON events BEGIN SELECT RAISE(FAIL, 'append-only')
      WHERE NEW.position <> 1 + coalesce((SELECT max(position) FROM events), 0); END;
    DROP INDEX chambers_open; DROP INDEX ideas_by_creator; DROP INDEX members_open;
    CREATE INDEX ideas_by_creator ON ideas (creator_did, graduated_at);
    CREATE INDEX members_open ON members (did, chamber_id, turn_order, has_committed, has_revealed) WHERE is_open;
    CREATE TABLE chamber_phases (chamber_id INTEGER PRIMARY KEY, phase TEXT NOT NULL, next_deadline INTEGER) STRICT;
    CREATE INDEX chambers_by_phase ON chamber_phases (phase, chamber_id, next_deadline);
    DROP TABLE snapshots;
    CREATE TABLE snapshots (stream ANY PRIMARY KEY NOT NULL, event_id INTEGER NOT NULL, version INTEGER NOT NULL, leaf BLOB NOT NULL,
      state TEXT NOT NULL, checksum BLOB NOT NULL) STRICT;
    ALTER TABLE contacts RENAME TO later;
    CREATE TABLE contacts (did TEXT PRIMARY KEY, operator_email TEXT NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO contacts SELECT did, CAST(operator_email AS TEXT) FROM later; DROP TABLE later;
    ${WITHOUT_NEW_TABLES}
    PRAGMA user_version = 7;
  `);
  db.close();
}

const WITHOUT_NEW_TABLES = 'DROP TABLE callbacks; DROP TABLE callback_signatures; DROP TABLE withheld;';

export function asSchema9(path: string): void {
  const db = new Database(path);
  db.exec(`
    DROP TRIGGER events_refuse_update;
    CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'append-only'); END;
    ${WITHOUT_NEW_TABLES} PRAGMA user_version = 9;
  `);
  db.close();
}

/** Converts the file to schema 2, which release 0.1.0 wrote. */
export function asSchema2(path: string): void {
  asSchema7(path);
  const db = new Database(path);
  db.exec(`
    ALTER TABLE events DROP COLUMN line_crc; ALTER TABLE events DROP COLUMN nodes_crc;
    ALTER TABLE chambers RENAME TO later;
    CREATE TABLE chambers (
      chamber_id INTEGER PRIMARY KEY, name TEXT NOT NULL, creator_did TEXT NOT NULL, lobby_deadline INTEGER NOT NULL,
      proposal_deadline INTEGER NOT NULL, debate_deadline INTEGER NOT NULL, allocate_commit_deadline INTEGER NOT NULL,
      allocate_reveal_deadline INTEGER NOT NULL, member_count INTEGER NOT NULL, is_committed INTEGER NOT NULL,
      is_settled INTEGER NOT NULL) STRICT;
    INSERT INTO chambers SELECT chamber_id, listing ->> 'name', creator_did, lobby_deadline, proposal_deadline, debate_deadline,
      allocate_commit_deadline, allocate_reveal_deadline, listing ->> 'memberCount', is_committed, is_settled FROM later;
    DROP TABLE later;
    DROP TABLE registrations; DROP TABLE members; DROP TABLE turns; DROP TABLE chamber_phases; DROP TABLE snapshots;
    DROP TABLE tiles; DROP TABLE checkpoints;
    CREATE INDEX chambers_committed ON chambers (chamber_id) WHERE is_committed = 1;
    CREATE INDEX chambers_open ON chambers (chamber_id) WHERE is_committed = 0;
    UPDATE meta SET name = 'told_at' WHERE name = 'clock_high_water_mark';
    PRAGMA user_version = 2;
  `);
  db.close();
}

/** Flips one bit of one column of an event in a closed database. */
export function flipBit(
  path: string,
  { column, position, bit }: { readonly column: string; readonly position: number; readonly bit: number },
): void {
  const db = new Database(path);
  db.exec('DROP TRIGGER events_refuse_update');
  const bytes = db
    .prepare(`SELECT CAST(${column} AS BLOB) FROM events WHERE position = ?`)
    .pluck()
    .get(position) as Buffer;
  const at = Math.floor(bit / 8) % bytes.length;
  bytes[at] = (bytes[at] as number) ^ (1 << (bit % 8));
  const value = column === 'line' ? 'CAST(? AS TEXT)' : '?';
  db.prepare(`UPDATE events SET ${column} = ${value} WHERE position = ?`).run(bytes, position);
  db.exec("CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'no'); END");
  db.close();
}
