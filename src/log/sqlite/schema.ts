// The SQLite schema: `events` is the source of truth and append-only for every program; the rest is derived or personal.
import type { Database } from 'better-sqlite3';
import { newLogId } from '../log-id.ts';
import { DERIVED } from './derived-tables.ts';

export const SCHEMA_VERSION = 7;

/** A line and its nodes have their CRC-32s, which every read is compared with. */
const EVENTS = `
CREATE TABLE events (
  position INTEGER PRIMARY KEY,
  chamber_id INTEGER,
  account TEXT,
  event_id INTEGER NOT NULL,
  line TEXT NOT NULL,
  signature BLOB,
  nodes BLOB,
  line_crc INTEGER,
  nodes_crc INTEGER,
  CHECK ((chamber_id IS NULL) <> (account IS NULL))
) STRICT;
`;

export const APPEND_ONLY_TRIGGERS = ['events_refuse_update', 'events_refuse_delete', 'events_refuse_replace'] as const;

// REPLACE deletes without firing DELETE triggers unless the connection asks for them, so the insert itself is checked: a row at
// the next position replaces nothing. FAIL undoes nothing; ABORT would keep a statement journal for every insert. Unique
// indexes of streams and signatures would make an append write two to three times as much (event-index.ts has the figures): the
// service checks both in memory, refuses to start on rows that break them, and `fsck --repair-tail` removes such rows.
export const APPEND_ONLY = `
CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events BEGIN
  SELECT RAISE(ABORT, 'events is append-only: no UPDATE');
END;
CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events BEGIN
  SELECT RAISE(ABORT, 'events is append-only: no DELETE');
END;
CREATE TRIGGER events_refuse_replace BEFORE INSERT ON events BEGIN
  SELECT RAISE(FAIL, 'events is append-only: not the next position')
    WHERE NEW.position <> 1 + coalesce((SELECT max(position) FROM events), 0);
END;
`;

/** Derived too, by event-index.ts: complete up to the watermark. */
export const INDEX_TABLES = ['stream_events', 'signatures'] as const;

/** A stream is a chamber's number or an agent's DID. */
export const INDEXES = `
CREATE TABLE stream_events (
  stream ANY NOT NULL,
  event_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (stream, event_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE signatures (
  prefix BLOB NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (prefix, position)
) STRICT, WITHOUT ROWID;
INSERT OR REPLACE INTO meta (name, value) VALUES ('indexed_through', '0');
`;

/** published-tree.ts writes it. Entries are on level -1. */
export const PUBLISHED_TREE = `
CREATE TABLE tiles (
  level INTEGER NOT NULL,
  tile INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  PRIMARY KEY (level, tile)
) STRICT;
CREATE TABLE checkpoints (
  log_id TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  note TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`;

/** Signatures of registrations, hashed: a line must not hold one that covers an e-mail address. */
export const REGISTRATIONS = `
CREATE TABLE registrations (
  signature_hash BLOB PRIMARY KEY,
  did TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  covers_email INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`;

const REST = `
${REGISTRATIONS}
CREATE TABLE contacts (did TEXT PRIMARY KEY, operator_email TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

export const ANOTHER_PROGRAM = 'the file is a database of another program';

/** Other programs count in user_version too. Throws if the file has no events of a service, whichever its schema version. */
export function requireOwnTables(db: Database): void {
  const columns = "SELECT count(*) FROM pragma_table_info('events') WHERE name IN ('position', 'event_id', 'line')";
  if (db.prepare<[], number>(columns).pluck().get() !== 3) throw new Error(ANOTHER_PROGRAM);
}

/** A file without a schema version may only be a new one. */
export function requireNoTables(db: Database): void {
  const tables = db.prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").pluck().get() as number;
  if (tables > 0) throw new Error(ANOTHER_PROGRAM);
}

/** Creates the tables in the caller's transaction. */
export function createSchema(db: Database): void {
  requireNoTables(db);
  db.exec(EVENTS + APPEND_ONLY + DERIVED + REST + INDEXES + PUBLISHED_TREE);
  db.prepare("INSERT INTO meta (name, value) VALUES ('log_id', ?)").run(newLogId());
  db.pragma(`user_version = ${SCHEMA_VERSION}`);
}
