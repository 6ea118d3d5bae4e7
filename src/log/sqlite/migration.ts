// Brings a file of an earlier schema to this one: that of release 0.1.0, or the last one before this. Each step is a transaction that also
// commits how far the migration is, so a process that is killed resumes at the next start. Lines, signatures and tree nodes stay as they
// are, byte for byte.
//  1. One transaction adds the columns, keys and tables; from then on older releases refuse the file. The last schema needs no more.
//  2. Every event gets its checksums, a batch in a transaction.
//  3. One transaction makes the derived tables from the lines.
import { isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { Database, Statement } from 'better-sqlite3';
import { hiddenSignatureKey } from '../../crypto/http-signature.ts';
import { HASH_BYTES, leafHash, nodeHash } from '../../crypto/merkle.ts';
import { fromLine, toLine } from '../../vocabulary/events.ts';
import { CLOCK_HIGH_WATER_MARK } from '../clock-reset.ts';
import { foldLog } from '../sql/fold.ts';
import {
  CHECKPOINTS,
  CONTACTS,
  createDerivedIndexes,
  createDerivedTables,
  createTable,
  DERIVED_TABLES,
  REGISTRATIONS,
  SNAPSHOTS,
  TILES,
} from '../sql/tables.ts';
import { SQLITE, transactionOn } from './connection.ts';
import {
  ANOTHER_PROGRAM,
  APPEND_ONLY,
  APPEND_ONLY_TRIGGERS,
  KEYS,
  requireNoTables,
  requireOwnTables,
  SCHEMA_VERSION,
} from './schema.ts';

/** Release 0.1.0 wrote schema 2. */
const SCHEMA_OF_0_1 = 2;
/** It had an index of its own beside the events. */
const SCHEMA_WITH_INDEX = 7;
/** Step 1 is done, and not the others. */
const SEALING = 8;

/** Schemas that can be migrated; the others were in no release. */
export const EARLIER_SCHEMAS: readonly number[] = [SCHEMA_OF_0_1, SCHEMA_WITH_INDEX, SEALING];

const EVENTS_PER_STEP = 2_000;

/** Name in `meta` of the last position of step 2. */
const SEALED_THROUGH = 'sealed_through';

export interface MigrationProgress {
  readonly step: 'keys' | 'checksums' | 'tables';
  /** Events that the step has passed, and all of them. */
  readonly events: number;
  readonly of: number;
}

export type OnMigration = (progress: MigrationProgress) => void;

/** Returns the version, 0 of a file without tables; throws an Error of one line if this release can't start on the file. */
export function requireKnownSchema(db: Database): number {
  const version = db.pragma('user_version', { simple: true }) as number;
  if (version > SCHEMA_VERSION) {
    throw new Error(`the file has schema ${version}, newer than schema ${SCHEMA_VERSION} of this version`);
  }
  if (version < 0) throw new Error(ANOTHER_PROGRAM);
  if (version === 0) {
    requireNoTables(db);
    return version;
  }
  requireOwnTables(db);
  if (version === SCHEMA_VERSION || EARLIER_SCHEMAS.includes(version)) return version;
  throw new Error(`the file has schema ${version}, which no release wrote`);
}

/** Migrates a file whose schema is known. */
export async function migrate(db: Database, onProgress: OnMigration): Promise<void> {
  const version = db.pragma('user_version', { simple: true });
  if (version === SCHEMA_VERSION) return;
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
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
    db.exec('COMMIT');
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** The derived tables keep their rows, and get other indexes. */
function replaceIndex(db: Database): void {
  addKeys(db);
  db.exec('DROP TABLE chamber_phases; DROP TABLE snapshots; ALTER TABLE contacts RENAME TO earlier_contacts');
  dropIndexes(db);
  db.exec(createDerivedIndexes(SQLITE) + createTable(SQLITE, SNAPSHOTS));
  replaceContacts(db);
  db.pragma(`user_version = ${SCHEMA_VERSION}`);
}

/** Those of the derived tables. */
function dropIndexes(db: Database): void {
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
  // The clock's name was another one in 0.1.0.
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

/** The addresses are bytes, as in PostgreSQL, whose text can't hold each. */
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

/** 0.1.0 knew the signatures of registrations, which cover e-mail addresses, from the events: those stay as they are. */
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
  const update = db.prepare<[number, number | null, number]>(
    'UPDATE events SET line_crc = ?, nodes_crc = ? WHERE position = ?',
  );
  const saveProgress = db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)');
  const seal = db.transaction((events: readonly UnsealedEvent[], through: number) => {
    dropTriggers(db);
    for (const event of events) update.run(...checksumsOf(event, nodesOf), event.position);
    db.exec(APPEND_ONLY);
    saveProgress.run(SEALED_THROUGH, String(through));
  });
  const saved = db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get(SEALED_THROUGH);
  for (let after = Number(saved ?? 0); after < last; after += EVENTS_PER_STEP) {
    const through = Math.min(after + EVENTS_PER_STEP, last);
    const events = unsealed.all(after, through);
    if (events.length > 0) seal.immediate(events, through);
    onProgress({ step: 'checksums', events: through, of: last });
  }
}

/** A line or nodes that are damaged get a checksum that is not theirs, so that every read detects the damage. */
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
  return nodeAt(nodes, 0).equals(leafHash(line));
}

/** The form is all that a line outside of the tree can be checked by, without its stream. */
function isCanonical(line: Buffer): boolean {
  try {
    return isUtf8(line) && toLine(fromLine(line.toString())) === line.toString();
  } catch {
    return false;
  }
}

/** Every node above the leaf is the hash of its two children. */
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

/** A damaged chamber is no reason to keep the service from the others. Its row was right before. */
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

/** In the form of listing-json.ts. Release 0.1.0 had neither a length of turns nor a bound of members in the row. */
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
