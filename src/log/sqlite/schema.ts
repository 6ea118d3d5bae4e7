// The SQLite schema: `events` is the source of truth and append-only for every program; the rest is derived or personal.
import type { Database } from 'better-sqlite3';
import { newLogId } from '../log-id.ts';
import { createDerivedTables, createTable, KEPT_TABLES } from '../sql/tables.ts';
import { SQLITE } from './connection.ts';

export const SCHEMA_VERSION = 9;

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

const STREAM_OF_NEW = 'coalesce(NEW.chamber_id, NEW.account)';

/** The names by which every statement knows an event, and the keys that keep a stream and a signature from having two. */
export const KEYS = `
ALTER TABLE events ADD COLUMN stream ANY GENERATED ALWAYS AS (coalesce(chamber_id, account)) VIRTUAL;
CREATE UNIQUE INDEX events_by_stream ON events (stream, event_id);
CREATE UNIQUE INDEX events_by_signature ON events (signature) WHERE signature IS NOT NULL;
`;

export const APPEND_ONLY_TRIGGERS = ['events_refuse_update', 'events_refuse_delete', 'events_refuse_replace'] as const;

// REPLACE deletes without firing DELETE triggers unless the connection asks for them, so the insert itself is checked: a row at
// the next position, for the next event of its stream and with a new signature, replaces nothing. FAIL undoes nothing; ABORT would keep a
// statement journal for every insert.
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
  SELECT RAISE(FAIL, 'events is append-only: not the next event of its stream')
    WHERE NEW.event_id <> 1 + coalesce((SELECT max(event_id) FROM events WHERE stream = ${STREAM_OF_NEW}), 0);
  SELECT RAISE(FAIL, 'events is append-only: the signature is there')
    WHERE NEW.signature IS NOT NULL AND EXISTS (SELECT 1 FROM events WHERE signature = NEW.signature);
END;
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
  const tables = KEPT_TABLES.map((table) => createTable(SQLITE, table)).join('\n');
  db.exec(EVENTS + KEYS + APPEND_ONLY + tables + createDerivedTables(SQLITE));
  db.prepare("INSERT INTO meta (name, value) VALUES ('log_id', ?)").run(newLogId());
  db.pragma(`user_version = ${SCHEMA_VERSION}`);
}
