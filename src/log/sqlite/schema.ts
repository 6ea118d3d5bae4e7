// The SQLite schema: `events` is the source of truth and append-only for every program; the rest is derived or personal.
import { randomBytes } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { hiddenSignatureKey } from '../../crypto/http-signature.ts';
import { placeChambers } from './chamber-phases.ts';
import { readClock } from './clock.ts';
import { CHAMBER_PACE, DERIVED, deriveTables, SNAPSHOTS, TURN_PACE } from './derived-tables.ts';
import { indexEverything, WATERMARK } from './event-index.ts';

export const SCHEMA_VERSION = 6;

/** CRC-32 of the line and of the nodes, which a read is compared with; null in events of earlier schemas. */
const CHECKSUMS = ['line_crc INTEGER', 'nodes_crc INTEGER'] as const;

const EVENTS = `
CREATE TABLE events (
  position INTEGER PRIMARY KEY,
  chamber_id INTEGER,
  account TEXT,
  event_id INTEGER NOT NULL,
  line TEXT NOT NULL,
  signature BLOB,
  nodes BLOB,
  ${CHECKSUMS.join(',\n  ')},
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

/** Signatures of registrations, hashed: a line must not hold one that covers an e-mail address. */
const REGISTRATIONS = `
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

/** Creates the schema in a new file and migrates an older one; throws if a newer service or another program wrote the file. */
export function migrate(db: Database): void {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version > SCHEMA_VERSION) {
    throw new Error(`the file has schema ${version}, newer than schema ${SCHEMA_VERSION} of this version`);
  }
  if (version < 0) throw new Error(ANOTHER_PROGRAM);
  if (version > 0) requireOwnTables(db);
  if (version === SCHEMA_VERSION) return;
  db.transaction(() => {
    if (version === 0) create(db);
    if (version === 1) fromSchema1(db);
    if (version === 1 || version === 2) fromSchema2(db);
    if (version >= 1 && version <= 3) fromSchema3(db);
    if (version === 4) fromSchema4(db);
    if (version === 4 || version === 5) fromSchema5(db);
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  }).immediate();
}

const ANOTHER_PROGRAM = 'the file is a database of another program';

/** Other programs count in user_version too. Throws if the file has no events of a service, whichever its schema version. */
export function requireOwnTables(db: Database): void {
  const columns = "SELECT count(*) FROM pragma_table_info('events') WHERE name IN ('position', 'event_id', 'line')";
  if (db.prepare<[], number>(columns).pluck().get() !== 3) throw new Error(ANOTHER_PROGRAM);
}

function create(db: Database): void {
  const tables = db.prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").pluck().get() as number;
  if (tables > 0) throw new Error(ANOTHER_PROGRAM);
  db.exec(EVENTS + APPEND_ONLY + DERIVED + REST + INDEXES);
  db.prepare("INSERT INTO meta (name, value) VALUES ('log_id', ?)").run(randomBytes(16).toString('hex'));
}

/** Schema 1 had indexes of SQLite's own. */
function fromSchema1(db: Database): void {
  db.exec(`
    DROP TRIGGER events_refuse_update; DROP TRIGGER events_refuse_delete; DROP TRIGGER events_refuse_gaps;
    DROP INDEX events_of_chamber; DROP INDEX events_of_account; DROP INDEX events_by_signature;
    ${APPEND_ONLY} ${INDEXES}
  `);
  indexEverything(db);
}

/** Schema 2 had no checksums. The columns are added without a write to any row. */
function fromSchema2(db: Database): void {
  for (const column of CHECKSUMS) db.exec(`ALTER TABLE events ADD COLUMN ${column}`);
}

/**
 * Schema 3 had no members and turns: the derived tables are made anew. It knew the signatures of registrations, which covered
 * e-mail addresses, from their lines: those stay as they are.
 */
function fromSchema3(db: Database): void {
  db.exec(REGISTRATIONS);
  db.exec('CREATE TEMP TABLE earlier AS SELECT * FROM chambers');
  const damaged: number[] = [];
  deriveTables(db, ({ chamber_id: chamberId }) => damaged.push(chamberId));
  // A damaged chamber is no reason to keep the service from the others. Its row was right before.
  const keep = db.prepare(
    `INSERT OR REPLACE INTO chambers SELECT chamber_id, name, creator_did, lobby_deadline, proposal_deadline, debate_deadline,
       allocate_commit_deadline, allocate_reveal_deadline, member_count, NULL, NULL, is_committed, is_settled, NULL
     FROM earlier WHERE chamber_id = ?`,
  );
  for (const chamberId of damaged) keep.run(chamberId);
  db.exec('DROP TABLE earlier; DELETE FROM chamber_phases');
  placeChambers(db, readClock(db));
  const signed = db.prepare<[], { readonly account: string; readonly event_id: number; readonly signature: Buffer }>(
    `SELECT account, event_id, signature FROM events
     WHERE position IN (
       SELECT position FROM stream_events WHERE stream >= ''
       UNION SELECT position FROM events WHERE position > (SELECT CAST(value AS INTEGER) FROM meta WHERE name = '${WATERMARK}')
     ) AND account IS NOT NULL AND signature IS NOT NULL AND json_valid(line) AND json_extract(line, '$.type') = 'agent.registered'`,
  );
  const remember = db.prepare('INSERT OR IGNORE INTO registrations VALUES (?, ?, ?, 1)');
  for (const { account, event_id, signature } of signed.all()) {
    remember.run(Buffer.from(hiddenSignatureKey(signature.toString('latin1')), 'latin1'), account, event_id);
  }
}

/** Schema 4 had snapshots of chambers only. */
function fromSchema4(db: Database): void {
  db.exec(`
    ALTER TABLE snapshots RENAME TO earlier_snapshots;
    ${SNAPSHOTS}
    INSERT INTO snapshots SELECT * FROM earlier_snapshots;
    DROP TABLE earlier_snapshots;
  `);
}

/** Schema 5 had no chambers that end phases early. */
function fromSchema5(db: Database): void {
  db.exec(`ALTER TABLE chambers ADD COLUMN ${CHAMBER_PACE}; ALTER TABLE turns ADD COLUMN ${TURN_PACE}`);
}
