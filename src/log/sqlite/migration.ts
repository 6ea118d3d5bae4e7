// Migrates a file of release 0.1.0 or of the last schemas before this one. Each step is a transaction that also commits the progress, so a
// migration that is killed resumes at the next start. Lines, signatures and tree nodes stay the same, byte for byte.
//  1. One transaction adds columns, keys and tables; from then on older releases reject the file. The last schemas need no more.
//  2. Every event gets its checksums, in batches of one transaction each.
//  3. One transaction rebuilds the derived tables from the lines.
import { isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { Database, Statement } from 'better-sqlite3';
import { hiddenSignatureKey } from '../../crypto/http-signature.ts';
import { HASH_BYTES, nodeHash } from '../../crypto/merkle.ts';
import { storedLeaf } from '../../crypto/stub.ts';
import { fromLine, toLine } from '../../vocabulary/events.ts';
import { CLOCK_HIGH_WATER_MARK } from '../clock-reset.ts';
import { foldLog } from '../sql/fold.ts';
import {
  CALLBACK_SIGNATURES,
  CALLBACKS,
  CHECKPOINTS,
  CONTACTS,
  createDerivedIndexes,
  createDerivedTables,
  createTable,
  createWithheld,
  DERIVED_TABLES,
  REGISTRATIONS,
  SNAPSHOTS,
  TILES,
} from '../sql/tables.ts';
import { SQLITE, transactionOn } from './connection.ts';
import { APPEND_ONLY, APPEND_ONLY_TRIGGERS, KEYS, readMeta, SCHEMA_VERSION } from './schema.ts';

const SCHEMA_OF_0_1 = 2;
/** Its index of events is a table. */
const SCHEMA_WITH_INDEX = 7;
/** Step 1 is done, and the others are not. */
const SEALING = 8;
/** It has no withheld lines and no callbacks. */
const LAST_VERSION = 9;

const KNOWN = [0, SCHEMA_OF_0_1, SCHEMA_WITH_INDEX, SEALING, LAST_VERSION, SCHEMA_VERSION];

const EVENTS_PER_STEP = 2_000;

/** Name in `meta` of the last position that step 2 has processed. */
const SEALED_THROUGH = 'sealed_through';

export interface MigrationProgress {
  readonly step: 'keys' | 'checksums' | 'tables';
  /** Events that the step has processed. */
  readonly events: number;
  readonly of: number;
}

export type OnMigration = (progress: MigrationProgress) => void;

/** Returns the version, 0 for an empty file. Throws an Error of one line if the file is not a log, or this version can't migrate it. */
export function requireKnownSchema(db: Database): number {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version > SCHEMA_VERSION) {
    throw new Error(`the file has schema ${version}, newer than schema ${SCHEMA_VERSION} of this version`);
  }
  // Other programs use user_version too.
  const isOwn = version === 0 ? count(db, 'sqlite_schema', "type = 'table'") === 0 : hasEvents(db);
  if (version < 0 || !isOwn) throw new Error('the file is a database of another program');
  if (KNOWN.includes(version)) return version;
  throw new Error(`the file has schema ${version}, which no release wrote`);
}

function hasEvents(db: Database): boolean {
  return count(db, "pragma_table_info('events')", "name IN ('position', 'event_id', 'line')") === 3;
}

function count(db: Database, source: string, condition: string): number {
  return db.prepare<[], number>(`SELECT count(*) FROM ${source} WHERE ${condition}`).pluck().get() ?? 0;
}

export async function migrate(db: Database, onProgress: OnMigration): Promise<void> {
  const version = db.pragma('user_version', { simple: true });
  if (version === SCHEMA_VERSION) return;
  if (version === LAST_VERSION) return db.transaction(() => finish(db)).immediate();
  if (version !== SEALING) {
    onProgress({ step: 'keys', events: 0, of: lastPosition(db) });
    db.transaction(version === SCHEMA_OF_0_1 ? () => addTables(db) : () => replaceIndex(db)).immediate();
  }
  if (version === SCHEMA_WITH_INDEX) return;
  sealEvents(db, onProgress);
  db.exec('BEGIN IMMEDIATE');
  try {
    await makeTables(db, onProgress);
    db.prepare('DELETE FROM meta WHERE name = ?').run(SEALED_THROUGH);
    finish(db);
    db.exec('COMMIT');
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** Keeps the rows of the derived tables, and replaces their indexes. */
function replaceIndex(db: Database): void {
  // A connection without withholding-guard.ts renames no table while the trigger asks for it.
  db.exec('DROP TABLE chamber_phases; DROP TABLE snapshots; ALTER TABLE contacts RENAME TO earlier_contacts');
  addKeys(db);
  dropDerivedIndexes(db);
  db.exec(createDerivedIndexes(SQLITE) + createTable(SQLITE, SNAPSHOTS));
  replaceContacts(db);
  finish(db);
}

/** The last step from every schema. From now on the trigger that refuses UPDATE lets withheld lines through. */
function finish(db: Database): void {
  dropTriggers(db);
  const tables = [CALLBACKS, CALLBACK_SIGNATURES].map((table) => createTable(SQLITE, table)).join('\n');
  db.exec(APPEND_ONLY + tables + createWithheld(SQLITE));
  db.pragma(`user_version = ${SCHEMA_VERSION}`);
}

function dropDerivedIndexes(db: Database): void {
  const names = db.prepare<[string], string>(
    `SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN (SELECT value FROM json_each(?))`,
  );
  for (const name of names.pluck().all(JSON.stringify(DERIVED_TABLES))) db.exec(`DROP INDEX ${name}`);
}

function addTables(db: Database): void {
  db.exec(`
    ALTER TABLE events ADD COLUMN line_crc INTEGER;
    ALTER TABLE events ADD COLUMN nodes_crc INTEGER;
    ${[REGISTRATIONS, TILES, CHECKPOINTS].map((table) => createTable(SQLITE, table)).join('\n')}
    ALTER TABLE contacts RENAME TO earlier_contacts;
  `);
  addKeys(db);
  replaceContacts(db);
  rememberRegistrations(db);
  // Release 0.1.0 called the clock told_at.
  db.exec(`
    INSERT OR REPLACE INTO meta
      SELECT '${CLOCK_HIGH_WATER_MARK}', CAST(max(CAST(value AS INTEGER)) AS TEXT) FROM meta
      WHERE name IN ('${CLOCK_HIGH_WATER_MARK}', 'told_at') HAVING count(*) > 0;
    DELETE FROM meta WHERE name = 'told_at';
  `);
  db.pragma(`user_version = ${SEALING}`);
}

function addKeys(db: Database): void {
  dropTriggers(db);
  db.exec(KEYS + APPEND_ONLY);
  db.exec("DROP TABLE stream_events; DROP TABLE signatures; DELETE FROM meta WHERE name = 'indexed_through'");
}

/** Addresses become bytes, as in PostgreSQL, whose text can't contain every address. */
function replaceContacts(db: Database): void {
  db.exec(`
    ${createTable(SQLITE, CONTACTS)}
    INSERT INTO contacts SELECT did, CAST(operator_email AS BLOB) FROM earlier_contacts;
    DROP TABLE earlier_contacts;
  `);
}

function dropTriggers(db: Database): void {
  for (const trigger of APPEND_ONLY_TRIGGERS) db.exec(`DROP TRIGGER IF EXISTS ${trigger}`);
}

/** Release 0.1.0 recognised repeated registrations by the events' signatures, which cover e-mail addresses. The events keep them. */
function rememberRegistrations(db: Database): void {
  const signed = db.prepare<[], { readonly account: string; readonly event_id: number; readonly signature: Buffer }>(
    `SELECT account, event_id, signature FROM events
     WHERE account IS NOT NULL AND signature IS NOT NULL AND json_valid(line) AND json_extract(line, '$.type') = 'agent.registered'`,
  );
  const remember = db.prepare('INSERT OR IGNORE INTO registrations VALUES (?, ?, ?, 1)');
  for (const { account, event_id, signature } of signed.all()) {
    remember.run(Buffer.from(hiddenSignatureKey(signature.toString('latin1')), 'latin1'), account, event_id);
  }
}

interface UnsealedEvent {
  readonly position: number;
  readonly stream: string | number;
  readonly event_id: number;
  readonly line: Buffer;
  readonly nodes: Buffer | null;
}

type NodesOf = Statement<[string | number, number], Buffer | null>;

function sealEvents(db: Database, onProgress: OnMigration): void {
  const last = lastPosition(db);
  const unsealed = db.prepare<[number, number], UnsealedEvent>(
    `SELECT position, stream, event_id, CAST(line AS BLOB) AS line, nodes FROM events
     WHERE position > ? AND position <= ? AND line_crc IS NULL ORDER BY position`,
  );
  const nodesOf: NodesOf = db
    .prepare<[string | number, number], Buffer | null>('SELECT nodes FROM events WHERE stream = ? AND event_id = ?')
    .pluck();
  const saveProgress = db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)');
  const seal = db.transaction((events: readonly UnsealedEvent[], through: number) => {
    dropTriggers(db);
    // No UPDATE can be prepared while the trigger is there.
    const update = db.prepare<[number, number | null, number]>(
      'UPDATE events SET line_crc = ?, nodes_crc = ? WHERE position = ?',
    );
    for (const event of events) update.run(...checksumsOf(event, nodesOf), event.position);
    db.exec(APPEND_ONLY);
    saveProgress.run(SEALED_THROUGH, String(through));
  });
  for (let after = Number(readMeta(db, SEALED_THROUGH) ?? 0); after < last; after += EVENTS_PER_STEP) {
    const through = Math.min(after + EVENTS_PER_STEP, last);
    const events = unsealed.all(after, through);
    if (events.length > 0) seal.immediate(events, through);
    onProgress({ step: 'checksums', events: through, of: last });
  }
}

/** A damaged line, or damaged nodes, get a wrong checksum, so that every read detects the damage. */
function checksumsOf(event: UnsealedEvent, nodesOf: NodesOf): [line: number, nodes: number | null] {
  const { line, nodes } = event;
  const isLineSound = nodes === null ? isCanonical(line) : isLeafOf(line, nodes);
  const areNodesSound = isLineSound && (nodes === null || areParents(event, nodes, nodesOf));
  return [checksumOf(line, isLineSound), nodes && checksumOf(nodes, areNodesSound)];
}

function checksumOf(bytes: Buffer, isSound: boolean): number {
  const checksum = crc32(bytes);
  return isSound ? checksum : ~checksum >>> 0;
}

function isLeafOf(line: Buffer, nodes: Buffer): boolean {
  return nodeAt(nodes, 0).equals(storedLeaf(line));
}

/** A line outside the tree can be checked only by its form, without its stream. */
function isCanonical(line: Buffer): boolean {
  try {
    return isUtf8(line) && toLine(fromLine(line.toString())) === line.toString();
  } catch {
    return false;
  }
}

/** Whether every node above the leaf is the hash of its two children. */
function areParents({ stream, event_id: eventId }: UnsealedEvent, nodes: Buffer, nodesOf: NodesOf): boolean {
  for (let level = 1; level < nodes.length / HASH_BYTES; level++) {
    const left = nodesOf.get(stream, eventId - 2 ** (level - 1));
    if (!left || !nodeAt(nodes, level).equals(nodeHash(nodeAt(left, level - 1), nodeAt(nodes, level - 1))))
      return false;
  }
  return true;
}

function nodeAt(nodes: Buffer, level: number): Buffer {
  return nodes.subarray(HASH_BYTES * level, HASH_BYTES * (level + 1));
}

/** A damaged chamber keeps its earlier row, and does not keep the service from starting. */
async function makeTables(db: Database, onProgress: OnMigration): Promise<void> {
  const of = lastPosition(db);
  onProgress({ step: 'tables', events: 0, of });
  db.exec('CREATE TEMP TABLE earlier AS SELECT * FROM chambers');
  for (const table of [...DERIVED_TABLES, SNAPSHOTS.name, 'chamber_phases']) db.exec(`DROP TABLE IF EXISTS ${table}`);
  db.exec(createDerivedTables(SQLITE));
  const damaged: (number | string | null)[] = [];
  await foldLog(transactionOn(db), {
    into: 'stored',
    onFault: ({ stream }) => damaged.push(stream),
    onEvents: (events) => onProgress({ step: 'tables', events, of }),
  });
  const keep = db.prepare(KEEP_CHAMBER);
  for (const stream of damaged) keep.run(stream);
  db.exec('DROP TABLE earlier');
}

/** In the form of listing-json.ts. The rows of release 0.1.0 had no length of turns and no maximum of members. */
const KEEP_CHAMBER = `
INSERT OR REPLACE INTO chambers SELECT chamber_id, creator_did, lobby_deadline, proposal_deadline, debate_deadline,
  allocate_commit_deadline, allocate_reveal_deadline, is_committed, is_settled,
  json_object('chamberId', chamber_id, 'name', name, 'creatorDid', creator_did, 'deadlines', json_object(
      'lobbyDeadline', lobby_deadline, 'proposalDeadline', proposal_deadline, 'debateDeadline', debate_deadline,
      'allocateCommitDeadline', allocate_commit_deadline, 'allocateRevealDeadline', allocate_reveal_deadline),
    'memberCount', member_count, 'turnSeconds', NULL, 'isCommitted', json(iif(is_committed, 'true', 'false')),
    'isSettled', json(iif(is_settled, 'true', 'false')), 'maxMembers', NULL)
FROM earlier WHERE chamber_id = ?`;

function lastPosition(db: Database): number {
  return db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck().get() ?? 0;
}
