// The SQLite schema: `events` is the source of truth and append-only for every program; the rest is derived or personal.
import type { Database } from 'better-sqlite3';

export const SCHEMA_VERSION = 1;

// A signature's key begins with its second, and its index holds the first 16 bytes only: a commit touches few of its pages.
// That no key is there twice is seen to by events_refuse_gaps, for every program that writes.
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
CREATE UNIQUE INDEX events_of_chamber ON events (chamber_id, event_id) WHERE chamber_id IS NOT NULL;
CREATE UNIQUE INDEX events_of_account ON events (account, event_id) WHERE account IS NOT NULL;
CREATE INDEX events_by_signature ON events (substr(signature, 1, 16)) WHERE signature IS NOT NULL;
`;

// REPLACE deletes without firing DELETE triggers, unless the connection asks for them. So the insert itself is checked:
// what takes the next position and the next event id of its stream, with a new signature, can replace nothing.
const APPEND_ONLY = `
CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events BEGIN
  SELECT RAISE(ABORT, 'events is append-only: no UPDATE');
END;
CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events BEGIN
  SELECT RAISE(ABORT, 'events is append-only: no DELETE');
END;
CREATE TRIGGER events_refuse_gaps BEFORE INSERT ON events BEGIN
  SELECT RAISE(ABORT, 'events is append-only: not the next position')
    WHERE NEW.position <> 1 + coalesce((SELECT max(position) FROM events), 0);
  SELECT RAISE(ABORT, 'events is append-only: not the next event of its stream')
    WHERE NEW.event_id <> 1 + CASE
      WHEN NEW.account IS NULL
      THEN coalesce((SELECT max(event_id) FROM events WHERE chamber_id = NEW.chamber_id), 0)
      ELSE coalesce((SELECT max(event_id) FROM events WHERE account = NEW.account), 0)
    END;
  SELECT RAISE(ABORT, 'events is append-only: the signature is in the log already')
    WHERE EXISTS (
      SELECT 1 FROM events WHERE substr(signature, 1, 16) = substr(NEW.signature, 1, 16) AND signature = NEW.signature
    );
END;
`;

/** Everything that `rebuild` can make again from the events. */
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

/** Creates the schema in a new file; throws when a newer service, or another program, wrote the file. */
export function migrate(db: Database, logId: string): void {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version === SCHEMA_VERSION) return;
  if (version > SCHEMA_VERSION) {
    throw new Error(`it has schema ${version}, newer than ${SCHEMA_VERSION}, which this version reads`);
  }
  const tables = db.prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").pluck().get() as number;
  if (tables > 0) throw new Error('it is a database of another program');
  db.transaction(() => {
    db.exec(EVENTS + APPEND_ONLY + DERIVED + REST);
    db.prepare("INSERT INTO meta (name, value) VALUES ('log_id', ?)").run(logId);
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  }).immediate();
}
