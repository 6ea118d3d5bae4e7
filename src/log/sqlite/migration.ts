// Migrates a file of release 0.1.0 or of a recent schema. Each step is a transaction that also commits the progress, so a migration that is
// killed resumes at the next start. Lines, signatures and tree nodes stay the same, byte for byte.
//  1. One transaction adds columns, keys and tables. From then on older releases reject the file. The recent schemas need no other step.
//  2. Every event gets its checksums, in batches, each in one transaction.
//  3. One transaction rebuilds the derived tables from the lines.
import { isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { Database, Statement } from 'better-sqlite3';
import { hiddenSignatureKey } from '../../crypto/http-signature.ts';
import { HASH_BYTES, nodeHash } from '../../crypto/merkle.ts';
import { storedLeaf } from '../../crypto/stub.ts';
import { fromLine, toLine } from '../../vocabulary/events.ts';
import { CLOCK_HIGH_WATER_MARK } from '../clock-reset.ts';
import { rebuildDerivedTables } from '../sql/rebuild-derived-tables.ts';
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
/** A schema in which the index of events is a table. */
const SCHEMA_WITH_INDEX = 7;
/** Marks a file after step 1 and before the end of step 3. */
const SCHEMA_DURING_MIGRATION = 8;
/** The previous schema, without withheld lines and callbacks. */
const PREVIOUS_VERSION = 9;

const KNOWN = [0, SCHEMA_OF_0_1, SCHEMA_WITH_INDEX, SCHEMA_DURING_MIGRATION, PREVIOUS_VERSION, SCHEMA_VERSION];

const EVENTS_PER_STEP = 2_000;

/** `meta` key of the last position that step 2 has processed. */
const CHECKSUMS_THROUGH = 'sealed_through';

export interface MigrationProgress {
  readonly step: 'keys' | 'checksums' | 'tables';
  /** Events that the step has processed. */
  readonly events: number;
  readonly of: number;
}

export type OnMigration = (progress: MigrationProgress) => void;

/** Returns the schema version; 0 for an empty file. Throws a single-line Error if the file is not a log, or can't be migrated. */
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
  if (version === PREVIOUS_VERSION) return db.transaction(() => finish(db)).immediate();
  if (version !== SCHEMA_DURING_MIGRATION) {
    onProgress({ step: 'keys', events: 0, of: lastPosition(db) });
    db.transaction(version === SCHEMA_OF_0_1 ? () => addTables(db) : () => replaceIndex(db)).immediate();
  }
  if (version === SCHEMA_WITH_INDEX) return;
  addChecksums(db, onProgress);
  db.exec('BEGIN IMMEDIATE');
  try {
    await rebuildTables(db, onProgress);
    db.prepare('DELETE FROM meta WHERE name = ?').run(CHECKSUMS_THROUGH);
    finish(db);
    db.exec('COMMIT');
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** Migrates SCHEMA_WITH_INDEX: keeps the rows of the derived tables, and replaces their indexes. */
function replaceIndex(db: Database): void {
  // A connection without withholding-guard.ts can't rename a table while a trigger uses the guard's function.
  db.exec('DROP TABLE chamber_phases; DROP TABLE snapshots; ALTER TABLE contacts RENAME TO earlier_contacts');
  addKeys(db);
  dropDerivedIndexes(db);
  db.exec(createDerivedIndexes(SQLITE) + createTable(SQLITE, SNAPSHOTS));
  replaceContacts(db);
  finish(db);
}

/** Ends the migration from any schema. From now on the UPDATE trigger allows the replacement of withheld lines. */
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
  db.pragma(`user_version = ${SCHEMA_DURING_MIGRATION}`);
}

function addKeys(db: Database): void {
  dropTriggers(db);
  db.exec(KEYS + APPEND_ONLY);
  db.exec("DROP TABLE stream_events; DROP TABLE signatures; DELETE FROM meta WHERE name = 'indexed_through'");
}

/** Stores addresses as bytes, as in PostgreSQL, whose text can't contain every address. */
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

/** Release 0.1.0 recognized repeated registrations by signatures in `events`, which cover e-mail addresses. They stay in `events`. */
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

interface EventWithoutChecksums {
  readonly position: number;
  readonly stream: string | number;
  readonly event_id: number;
  readonly line: Buffer;
  readonly nodes: Buffer | null;
}

type NodesOf = Statement<[string | number, number], Buffer | null>;

function addChecksums(db: Database, onProgress: OnMigration): void {
  const last = lastPosition(db);
  const withoutChecksums = db.prepare<[number, number], EventWithoutChecksums>(
    `SELECT position, stream, event_id, CAST(line AS BLOB) AS line, nodes FROM events
     WHERE position > ? AND position <= ? AND line_crc IS NULL ORDER BY position`,
  );
  const nodesOf: NodesOf = db
    .prepare<[string | number, number], Buffer | null>('SELECT nodes FROM events WHERE stream = ? AND event_id = ?')
    .pluck();
  const saveProgress = db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)');
  const addBatch = db.transaction((events: readonly EventWithoutChecksums[], through: number) => {
    dropTriggers(db);
    // No UPDATE can be prepared while the trigger exists.
    const update = db.prepare<[number, number | null, number]>(
      'UPDATE events SET line_crc = ?, nodes_crc = ? WHERE position = ?',
    );
    for (const event of events) update.run(...checksumsOf(event, nodesOf), event.position);
    db.exec(APPEND_ONLY);
    saveProgress.run(CHECKSUMS_THROUGH, String(through));
  });
  for (let after = Number(readMeta(db, CHECKSUMS_THROUGH) ?? 0); after < last; after += EVENTS_PER_STEP) {
    const through = Math.min(after + EVENTS_PER_STEP, last);
    const events = withoutChecksums.all(after, through);
    if (events.length > 0) addBatch.immediate(events, through);
    onProgress({ step: 'checksums', events: through, of: last });
  }
}

/** Returns wrong checksums for a damaged line or damaged nodes, so that every read detects the damage. */
function checksumsOf(event: EventWithoutChecksums, nodesOf: NodesOf): [line: number, nodes: number | null] {
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

/** Checks a line outside the tree, for which no hash is stored, by its form. */
function isCanonical(line: Buffer): boolean {
  try {
    return isUtf8(line) && toLine(fromLine(line.toString())) === line.toString();
  } catch {
    return false;
  }
}

/** Returns whether every node above the leaf is the hash of its two children. */
function areParents({ stream, event_id: eventId }: EventWithoutChecksums, nodes: Buffer, nodesOf: NodesOf): boolean {
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

/** Keeps the earlier rows of damaged chambers, which do not prevent the service from starting. */
async function rebuildTables(db: Database, onProgress: OnMigration): Promise<void> {
  const of = lastPosition(db);
  onProgress({ step: 'tables', events: 0, of });
  db.exec('CREATE TEMP TABLE earlier AS SELECT * FROM chambers');
  for (const table of [...DERIVED_TABLES, SNAPSHOTS.name, 'chamber_phases']) db.exec(`DROP TABLE IF EXISTS ${table}`);
  db.exec(createDerivedTables(SQLITE));
  const damaged: (number | string | null)[] = [];
  await rebuildDerivedTables(transactionOn(db), {
    into: 'stored',
    onFault: ({ stream }) => damaged.push(stream),
    onEvents: (events) => onProgress({ step: 'tables', events, of }),
  });
  const keep = db.prepare(KEEP_CHAMBER);
  for (const stream of damaged) keep.run(stream);
  db.exec('DROP TABLE earlier');
}

/** Converts a row of release 0.1.0 to the form of listing-json.ts. Rows had no turn length and no maximum number of members. */
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
