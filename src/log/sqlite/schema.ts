// The SQLite schema: `events` is the source of truth and append-only for every program; the rest is derived or personal.
import { randomBytes } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { indexEverything } from './event-index.ts';

export const SCHEMA_VERSION = 2;

const EVENTS = `
CREATE TABLE events (
  position INTEGER PRIMARY KEY,
  chamber_id INTEGER,
  account TEXT,
  event_id INTEGER NOT NULL,
  line TEXT NOT NULL,
  signature BLOB,
  nodes BLOB,
  CHECK ((chamber_id IS NULL) <> (account IS NULL))
) STRICT;
`;

export const APPEND_ONLY_TRIGGERS = ['events_refuse_update', 'events_refuse_delete', 'events_refuse_replace'] as const;

// REPLACE deletes without firing DELETE triggers unless the connection asks for them, so the insert itself is checked: a row at
// the next position replaces nothing. FAIL undoes nothing; ABORT would keep a statement journal for every insert. A unique
// index of streams or signatures would double the time of an append: the service checks both in memory, refuses to start on
// rows that break them, and `fsck --repair-tail` removes such rows.
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

/** Together with the index, everything that `rebuild` makes from the events. */
export const DERIVED_TABLES = ['chambers', 'ideas'] as const;

export const DERIVED = `
CREATE TABLE chambers (
  chamber_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  creator_did TEXT NOT NULL,
  lobby_deadline INTEGER NOT NULL,
  proposal_deadline INTEGER NOT NULL,
  debate_deadline INTEGER NOT NULL,
  allocate_commit_deadline INTEGER NOT NULL,
  allocate_reveal_deadline INTEGER NOT NULL,
  member_count INTEGER NOT NULL,
  is_committed INTEGER NOT NULL,
  is_settled INTEGER NOT NULL
) STRICT;
CREATE INDEX chambers_committed ON chambers (chamber_id) WHERE is_committed = 1;
CREATE INDEX chambers_open ON chambers (chamber_id) WHERE is_committed = 0;
CREATE INDEX chambers_open_by_creator ON chambers (creator_did) WHERE is_committed = 0;
CREATE INDEX chambers_unsettled ON chambers (allocate_reveal_deadline) WHERE is_settled = 0;
CREATE INDEX chambers_settled ON chambers (allocate_reveal_deadline) WHERE is_settled = 1;
CREATE TABLE ideas (
  chamber_id INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  ticker TEXT NOT NULL COLLATE NOCASE,
  proposed_at INTEGER NOT NULL,
  graduated_at TEXT,
  view TEXT NOT NULL,
  PRIMARY KEY (chamber_id, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX ideas_by_ticker ON ideas (ticker, graduated_at, proposed_at, chamber_id);
CREATE INDEX ideas_graduated ON ideas (graduated_at) WHERE graduated_at IS NOT NULL;
`;

const REST = `
CREATE TABLE contacts (did TEXT PRIMARY KEY, operator_email TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

/** Creates the schema in a new file and migrates an older one; throws if a newer service or another program wrote the file. */
export function migrate(db: Database): void {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version === SCHEMA_VERSION) return;
  if (version > SCHEMA_VERSION) {
    throw new Error(`the file has schema ${version}, newer than schema ${SCHEMA_VERSION} of this version`);
  }
  db.transaction(() => {
    if (version === 0) create(db);
    else migrateSchema1(db);
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  }).immediate();
}

function create(db: Database): void {
  const tables = db.prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").pluck().get() as number;
  if (tables > 0) throw new Error('the file is a database of another program');
  db.exec(EVENTS + APPEND_ONLY + DERIVED + REST + INDEXES);
  db.prepare("INSERT INTO meta (name, value) VALUES ('log_id', ?)").run(randomBytes(16).toString('hex'));
}

/** Schema 1 had indexes of SQLite's own. */
function migrateSchema1(db: Database): void {
  db.exec(`
    DROP TRIGGER events_refuse_update; DROP TRIGGER events_refuse_delete; DROP TRIGGER events_refuse_gaps;
    DROP INDEX events_of_chamber; DROP INDEX events_of_account; DROP INDEX events_by_signature;
    CREATE INDEX chambers_committed ON chambers (chamber_id) WHERE is_committed = 1;
    ${APPEND_ONLY} ${INDEXES}
  `);
  indexEverything(db);
}
