// Brings a file of a released schema to this one. Each step is a transaction that also commits how far the migration is, so a
// process that is killed resumes at the next start. Lines, signatures and tree nodes stay as they are, byte for byte.
//  1. One transaction adds the columns and tables of the lines; from then on older releases refuse the file.
//  2. Every event gets its checksums, a batch in a transaction.
//  3. One transaction makes the derived tables from the lines. It is all that a file of schema 6 needs.
import { isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import type { Database, Statement } from 'better-sqlite3';
import { hiddenSignatureKey } from '../../crypto/http-signature.ts';
import { HASH_BYTES, leafHash, nodeHash } from '../../crypto/merkle.ts';
import { fromLine, toLine } from '../../vocabulary/events.ts';
import { fillPhases } from './chamber-phases.ts';
import { CLOCK_HIGH_WATER_MARK } from './clock.ts';
import { deriveTables } from './derived-tables.ts';
import { indexEverything } from './event-index.ts';
import {
  ANOTHER_PROGRAM,
  APPEND_ONLY,
  APPEND_ONLY_TRIGGERS,
  createSchema,
  PUBLISHED_TREE,
  REGISTRATIONS,
  requireNoTables,
  requireOwnTables,
  SCHEMA_VERSION,
} from './schema.ts';

/** Release 0.1.0 wrote schema 2. */
const SCHEMA_OF_0_1 = 2;
/** It had all tables, and no checksums in events that schema 2 wrote. */
const SCHEMA_WITH_MEMBERS = 4;
/** Step 1 is done. */
const SEALING = 5;
/** It had no published tree, and a column for each member of a listing. */
const SCHEMA_WITH_PHASES = 6;

/** Schemas that can be migrated; the others were in no release. */
export const EARLIER_SCHEMAS: readonly number[] = [SCHEMA_OF_0_1, SCHEMA_WITH_MEMBERS, SEALING, SCHEMA_WITH_PHASES];

const EVENTS_PER_STEP = 2_000;

/** Name in `meta` of the last position of step 2. */
const SEALED_THROUGH = 'sealed_through';

export interface MigrationProgress {
  readonly step: 'checksums' | 'tables';
  /** Events that the step has passed, and all of them. */
  readonly events: number;
  readonly of: number;
}

export type OnMigration = (progress: MigrationProgress) => void;

/** Creates the schema in a new file and migrates one of a release; throws if it can't, or another program wrote the file. */
export function migrate(db: Database, onMigration: OnMigration = () => {}): void {
  const version = requireKnownSchema(db);
  if (version === 0) db.transaction(() => createSchema(db)).immediate();
  else if (version !== SCHEMA_VERSION) migrateEarlier(db, version, onMigration);
}

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

function migrateEarlier(db: Database, version: number, onProgress: OnMigration): void {
  if (version < SEALING) db.transaction(() => addTables(db, version)).immediate();
  if (version <= SEALING) sealEvents(db, onProgress);
  db.transaction(() => {
    makeTables(db, onProgress);
    db.prepare('DELETE FROM meta WHERE name = ?').run(SEALED_THROUGH);
    // The publisher makes its tiles, bit by bit.
    db.exec(PUBLISHED_TREE);
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  }).immediate();
}

function addTables(db: Database, version: number): void {
  // Step 2 looks up tree nodes by the index.
  indexEverything(db);
  if (version === SCHEMA_OF_0_1) {
    db.exec(`
      ALTER TABLE events ADD COLUMN line_crc INTEGER;
      ALTER TABLE events ADD COLUMN nodes_crc INTEGER;
      ALTER TABLE chambers ADD COLUMN turn_seconds INTEGER;
      ALTER TABLE chambers ADD COLUMN max_members INTEGER;
      ${REGISTRATIONS}
    `);
    rememberRegistrations(db);
  }
  // The clock's name was another one in 0.1.0.
  db.exec(`
    INSERT OR REPLACE INTO meta
      SELECT '${CLOCK_HIGH_WATER_MARK}', CAST(max(CAST(value AS INTEGER)) AS TEXT) FROM meta
      WHERE name IN ('${CLOCK_HIGH_WATER_MARK}', 'told_at') HAVING count(*) > 0;
    DELETE FROM meta WHERE name = 'told_at';
  `);
  db.pragma(`user_version = ${SEALING}`);
}

/** 0.1.0 knew the signatures of registrations, which cover e-mail addresses, from the events: those stay as they are. */
function rememberRegistrations(db: Database): void {
  const signed = db.prepare<[], { readonly account: string; readonly event_id: number; readonly signature: Buffer }>(
    `SELECT account, event_id, signature FROM events
     WHERE position IN (SELECT position FROM stream_events WHERE stream >= '')
       AND account IS NOT NULL AND signature IS NOT NULL AND json_valid(line) AND json_extract(line, '$.type') = 'agent.registered'`,
  );
  const remember = db.prepare('INSERT OR IGNORE INTO registrations VALUES (?, ?, ?, 1)');
  for (const { account, event_id, signature } of signed.all()) {
    remember.run(Buffer.from(hiddenSignatureKey(signature.toString('latin1')), 'latin1'), account, event_id);
  }
}

interface UnsealedEvent {
  readonly position: number;
  readonly chamber_id: number | null;
  readonly event_id: number;
  readonly line: Buffer;
  readonly nodes: Buffer | null;
}

type NodesOf = Statement<[number | null, number], Buffer | null>;

function sealEvents(db: Database, onProgress: OnMigration): void {
  const last = lastPosition(db);
  const unsealed = db.prepare<[number, number], UnsealedEvent>(
    `SELECT position, chamber_id, event_id, CAST(line AS BLOB) AS line, nodes FROM events
     WHERE position > ? AND position <= ? AND line_crc IS NULL ORDER BY position`,
  );
  const nodesOf: NodesOf = db
    .prepare<[number | null, number], Buffer | null>(
      `SELECT nodes FROM events WHERE position = (SELECT position FROM stream_events WHERE stream = ? AND event_id = ?)`,
    )
    .pluck();
  const update = db.prepare<[number, number | null, number]>(
    'UPDATE events SET line_crc = ?, nodes_crc = ? WHERE position = ?',
  );
  const saveProgress = db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)');
  const seal = db.transaction((events: readonly UnsealedEvent[], through: number) => {
    for (const trigger of APPEND_ONLY_TRIGGERS) db.exec(`DROP TRIGGER ${trigger}`);
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

/** A line or nodes that are not as they were written get a checksum that is not theirs, so that every read detects the damage. */
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
function areParents({ chamber_id: chamberId, event_id: eventId }: UnsealedEvent, nodes: Buffer, nodesOf: NodesOf) {
  for (let level = 1; level < nodes.length / HASH_BYTES; level++) {
    const left = nodesOf.get(chamberId, eventId - 2 ** (level - 1));
    if (!left || !nodeAt(nodes, level).equals(nodeHash(nodeAt(left, level - 1), nodeAt(nodes, level - 1))))
      return false;
  }
  return true;
}

function nodeAt(nodes: Buffer, level: number): Buffer {
  return nodes.subarray(HASH_BYTES * level, HASH_BYTES * (level + 1));
}

function makeTables(db: Database, onProgress: OnMigration): void {
  const of = lastPosition(db);
  onProgress({ step: 'tables', events: 0, of });
  db.exec('CREATE TEMP TABLE earlier AS SELECT * FROM chambers');
  const damaged: (number | null)[] = [];
  deriveTables(
    db,
    ({ chamber_id: chamberId }) => damaged.push(chamberId),
    (events) => onProgress({ step: 'tables', events, of }),
  );
  // A damaged chamber is no reason to keep the service from the others. Its row was right before.
  const keep = db.prepare(
    `INSERT OR REPLACE INTO chambers SELECT chamber_id, creator_did, lobby_deadline, proposal_deadline, debate_deadline,
       allocate_commit_deadline, allocate_reveal_deadline, is_committed, is_settled,
       json_object('chamberId', chamber_id, 'name', name, 'creatorDid', creator_did, 'deadlines', json_object(
           'lobbyDeadline', lobby_deadline, 'proposalDeadline', proposal_deadline, 'debateDeadline', debate_deadline,
           'allocateCommitDeadline', allocate_commit_deadline, 'allocateRevealDeadline', allocate_reveal_deadline),
         'memberCount', member_count, 'turnSeconds', turn_seconds, 'isCommitted', json(iif(is_committed, 'true', 'false')),
         'isSettled', json(iif(is_settled, 'true', 'false')), 'maxMembers', max_members)
     FROM earlier WHERE chamber_id = ?`,
  );
  for (const chamberId of damaged) keep.run(chamberId);
  db.exec('DROP TABLE earlier');
  fillPhases(db);
}

function lastPosition(db: Database): number {
  return db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck().get() ?? 0;
}
