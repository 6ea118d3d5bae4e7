// The SQLite schema. `events` is the source of truth and append-only for every program, except for lines that the service withholds; the rest
// is derived or personal.
import type { Database } from 'better-sqlite3';
import { newLogId } from '../log-id.ts';
import { createDerivedTables, createKeptTables } from '../sql/tables.ts';
import { SQLITE } from './connection.ts';
import { GUARD_FUNCTION } from './withholding-guard.ts';

export const SCHEMA_VERSION = 10;

/** Every read checks a line and its nodes against their CRC-32s. */
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

/** The column `stream`, which shared statements use, and the unique keys. */
export const KEYS = `
ALTER TABLE events ADD COLUMN stream ANY GENERATED ALWAYS AS (coalesce(chamber_id, account)) VIRTUAL;
CREATE UNIQUE INDEX events_by_stream ON events (stream, event_id);
CREATE UNIQUE INDEX events_by_signature ON events (signature) WHERE signature IS NOT NULL;
`;

export const APPEND_ONLY_TRIGGERS = ['events_refuse_update', 'events_refuse_delete', 'events_refuse_replace'] as const;

const UNCHANGED = ['position', 'chamber_id', 'account', 'event_id', 'nodes', 'nodes_crc']
  .map((column) => `NEW.${column} IS OLD.${column}`)
  .join(' AND ');

// REPLACE deletes without firing DELETE triggers unless the connection enables them, so the insert itself is checked: a row at the next
// position, with the next event of its stream and a new signature, replaces nothing. ABORT instead of FAIL would require a statement
// journal for every insert.
export const APPEND_ONLY = `
CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events WHEN NOT (
  ${GUARD_FUNCTION}(OLD.stream, OLD.event_id, OLD.line, NEW.line) AND ${UNCHANGED} AND ifnull(NEW.signature, OLD.signature) IS OLD.signature
) BEGIN
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
  SELECT RAISE(FAIL, 'events is append-only: the signature already exists')
    WHERE NEW.signature IS NOT NULL AND EXISTS (SELECT 1 FROM events WHERE signature = NEW.signature);
END;
`;

/** Runs in the caller's transaction. */
export function createSchema(db: Database): void {
  db.exec(EVENTS + KEYS + APPEND_ONLY + createKeptTables(SQLITE) + createDerivedTables(SQLITE));
  db.prepare("INSERT INTO meta (name, value) VALUES ('log_id', ?)").run(newLogId());
  db.pragma(`user_version = ${SCHEMA_VERSION}`);
}

export function readMeta(db: Database, name: string): string | undefined {
  return db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get(name);
}
