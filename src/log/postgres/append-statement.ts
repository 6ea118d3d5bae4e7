// The statement that writes a batch. Why any number of nodes may run it concurrently:
//
// 1. A stream's rows are written as a chain. The lead, its first entry in the batch, is inserted only if the preceding event is in the log
//    and its own key (stream, event_id) is free; the rest are inserted only if the lead was. So events have no gaps. If two nodes extend a
//    stream from the same event, one wins; the other waits for it on the primary key, writes nothing to the stream and reports a conflict.
// 2. The chambers that a batch creates are one chain, by id. The lead must follow the highest chamber, so ids have no gaps and increase in
//    commit order.
// 3. A signature is accepted once: its index is unique, and a chain with a known signature is not inserted. A signature belongs to one
//    stream, so if it becomes known during the statement, its writer is a competitor, which has taken the lead's key.
// 4. There are no deadlocks. Only leads wait, and every node inserts them in the same order; the rest of a chain can't meet a competitor,
//    which would need the lead's key. Rows of registrations and contacts are written after the events, ordered by key.
// 5. Decisions under a lease are written only while their node holds it: the statement locks the lease's row against a new holder, or
//    waits for a new holder and writes nothing. So a new holder sees everything that the former one wrote, and the former one writes nothing
//    more.
// 6. A move also depends on its signer's account. Its lead is inserted only if no account event follows the one that the decision read. So a
//    move may be decided without reading the log: every written move was decided against current heads.
// 7. A registration that changes nothing has no event to compete for. Its signature is stored only if no event follows the head against
//    which it was decided. If another node stored the signature first, the whole statement fails.
// 8. Auditors allow 5 s between an account change and a later move that was decided without it. So a change is not written after
//    `accountsUntil`, by the database's clock. From that check until its commit has ended, however long that takes, the change holds a lock
//    on its account that every move of the account must share: a change that is not visible yet blocks all of them.
// 9. Nothing is written to a different log: the statement checks the database's logId.
// 10. Nothing is written from a batch that was decided before a withholding: the statement reads the number of the last one. A withholding
//    blocks new appends and waits for those in progress until it is committed, and the statement's snapshot is taken after its lock on
//    `events`. A signature that was removed with its line is still accepted only once, because its hash is looked up.
import type pg from 'pg';
import type { Millis } from '../../vocabulary/values.ts';
import { upsertSnapshots } from '../sql/event-log.ts';
import { type Columns, jsonRows, type Table } from '../sql/sql.ts';
import { CONTACTS, columnsOf, REGISTRATIONS, SNAPSHOTS, TABLES, upsert } from '../sql/tables.ts';
import { BATCH_COLUMNS, type Batch, type Chain, chainsOf, otherRows, rowsOf } from './append-batch.ts';
import { EVENT_COLUMN_NAMES, unnested } from './arrays.ts';
import { OtherLog } from './database-errors.ts';
import { POSTGRES } from './dialect.ts';
import { withheldKey } from './look-up.ts';
import { readLogId, sameLog } from './requirements.ts';
import { DURABLE_COMMIT, prepared } from './session.ts';

interface InsertOptions {
  readonly logId: string;
  /** Whether the statement looks for competitors before it inserts. Otherwise it fails if there is one. */
  readonly searchesFirst: boolean;
  /** The lowest chamber id, which needs no preceding chamber. */
  readonly chamberIdMin: number;
  readonly accountsUntil: Millis;
  readonly withheldThrough: number | undefined;
}

interface Inserted {
  /** The chains that were not inserted. */
  readonly lost: readonly Chain[];
  /** Whether all chains were lost because the log has a withholding that the batch does not reflect. */
  readonly isOutdated: boolean;
}

export async function insert(client: pg.Client, batch: Batch, options: InsertOptions): Promise<Inserted> {
  const { logId, searchesFirst, chamberIdMin, accountsUntil, withheldThrough = null } = options;
  const chains = chainsOf(batch.entries);
  const rows = rowsOf(chains, chamberIdMin);
  const others = otherRows(chains, batch.registrations);
  const tables = others.map(([table]) => table);
  const values = [
    ...[logId, accountsUntil, withheldThrough],
    ...BATCH_COLUMNS.map((column) => column.encode(rows)),
    ...others.map(([table, written]) => jsonRows(columnsWithLead(table), written)),
  ];
  const statement = prepared(statementFor(tables, searchesFirst), values, 'append');
  const { rows: found } = await client.query<{ readonly lead: string | null }>(statement);
  if (found.some(({ lead }) => lead === null)) throw new OtherLog(await readLogId(client), logId);
  const lost = new Set(found.map(({ lead }) => lead));
  return {
    lost: [...chains].filter(([lead]) => lost.has(lead)).map(([, chain]) => chain),
    isOutdated: lost.has(OUTDATED),
  };
}

/** Returned in place of a lead; no stream has this name. */
const OUTDATED = 'outdated';

/** Cached statements, one for each set of tables that is written in addition to `events`. */
const statements = new Map<string, string>();

function statementFor(tables: readonly Table[], searchesFirst: boolean): string {
  const key = [searchesFirst, ...tables.map(({ name }) => name)].join();
  const text = statements.get(key) ?? makeStatement(tables, searchesFirst);
  statements.set(key, text);
  return text;
}

const FIRST_COLUMN = 4;
const FIRST_TABLE = FIRST_COLUMN + BATCH_COLUMNS.length;

/** With this collation, DIDs sort after ':', and chamber ids before it. */
const IS_ACCOUNT = `stream COLLATE "C" > ':'`;
const IS_WRITTEN = 'lead IN (SELECT stream FROM written)';

/**
 * The statement returns the leads that were not inserted, or null if the database has a different log, in which case nothing is written.
 * All nodes lock accounts in the same order, and before they request any shared lock: the condition on `accounts` enforces that.
 */
function makeStatement(tables: readonly Table[], searchesFirst: boolean): string {
  const inserts = tables.map((table, index) => `, ${insertInto(table, `$${FIRST_TABLE + index}`)}`);
  return `
WITH ${sameLog('$1')}, ${DURABLE_COMMIT.cte}, last_withheld AS MATERIALIZED (
  SELECT coalesce(max(number), 0) AS number FROM withheld
), batch AS MATERIALIZED (
  SELECT * FROM ${unnested(BATCH_COLUMNS, FIRST_COLUMN)}
), held AS MATERIALIZED (
  SELECT holder FROM leases WHERE holder IN (SELECT lease FROM batch) FOR SHARE
), locked AS MATERIALIZED (
  SELECT count(pg_advisory_xact_lock(key)) AS accounts
  FROM (SELECT DISTINCT hashtextextended(stream, 0) AS key FROM batch WHERE ${IS_ACCOUNT} ORDER BY 1) AS keys
), lost AS MATERIALIZED (
  SELECT lead FROM batch, locked, last_withheld WHERE NOT EXISTS (SELECT FROM same_log)
    OR number > $3::bigint
    OR number > 0 AND signature IS NOT NULL AND ${IS_WITHHELD}
    OR before_event > 0 AND NOT ${hasEvent('before_stream', 'before_event')}
    OR ${hasEvent('account', 'account_event + 1')}
    OR account IS NOT NULL AND accounts >= 0 AND NOT pg_try_advisory_xact_lock_shared(hashtextextended(account, 0))
    OR ${IS_ACCOUNT} AND extract(epoch FROM clock_timestamp()) * 1000 > $2::float8
    OR lease IS NOT NULL AND lease NOT IN (SELECT holder FROM held)
    ${searchesFirst ? `OR ${IS_KNOWN}` : ''}
), ${searchesFirst ? INSERT_LEADS_THEN_REST : INSERT_ALL}, without_place AS (
  INSERT INTO unplaced_events SELECT stream, event_id FROM batch WHERE ${IS_WRITTEN} ORDER BY place
)${inserts.join('')}
SELECT lead FROM batch WHERE NOT ${IS_WRITTEN}
UNION ALL SELECT '${OUTDATED}' FROM last_withheld WHERE number > $3::bigint
UNION ALL SELECT NULL WHERE NOT EXISTS (SELECT FROM same_log) ${DURABLE_COMMIT.evaluated}`;
}

/** A scalar subquery, because the server may evaluate EXISTS by reading the whole table. */
function hasEvent(stream: string, eventId: string): string {
  return `(SELECT event_id FROM events AS e WHERE e.stream = ${stream} AND e.event_id = ${eventId}) IS NOT NULL`;
}

const IS_WITHHELD = `(SELECT w.event_id FROM withheld AS w WHERE w.signature = ${withheldKey('batch.signature')}) IS NOT NULL`;
const IS_KNOWN = '(SELECT event_id FROM events AS e WHERE e.signature = batch.signature) IS NOT NULL';

const INSERT = `INSERT INTO events (${EVENT_COLUMN_NAMES}) SELECT ${EVENT_COLUMN_NAMES} FROM batch`;
const IS_NOT_LOST = 'lead NOT IN (SELECT lead FROM lost)';
const INSERT_ALL = `written AS (${INSERT} WHERE ${IS_NOT_LOST} ORDER BY place RETURNING stream)`;
/** If a lead's key is taken in the meantime, the rest of its chain is not inserted. */
const INSERT_LEADS_THEN_REST = `written AS (
  ${INSERT} WHERE ${IS_NOT_LOST} AND before_event IS NOT NULL ORDER BY place ON CONFLICT DO NOTHING RETURNING stream
), rest AS (
  ${INSERT} WHERE ${IS_WRITTEN} AND before_event IS NULL ORDER BY place
)`;

const REGISTRATION_TABLES: readonly Table[] = [REGISTRATIONS, CONTACTS];

function columnsWithLead(table: Table): Columns {
  return { ...columnsOf(table), lead: 'text', ...(REGISTRATION_TABLES.includes(table) && { unchanged_at: 'integer' }) };
}

/** Returns a CTE that writes the rows in a parameter. */
function insertInto(table: Table, parameter: string): string {
  const names = table.columns.map(({ name }) => name);
  const listed = POSTGRES.listed(parameter, columnsWithLead(table));
  const isUnchanged = REGISTRATION_TABLES.includes(table) ? `OR ${IS_UNCHANGED}` : '';
  const source = `SELECT ${names} FROM ${listed} WHERE ${IS_WRITTEN} ${isUnchanged}`;
  if (table === REGISTRATIONS)
    return `new_${table.name} AS (INSERT INTO registrations (${names}) ${source} ORDER BY signature_hash)`;
  if (table === CONTACTS) return `new_${table.name} AS (${upsert(table, `${source} ORDER BY did`)})`;
  if (table === SNAPSHOTS) return `new_${table.name} AS (${upsertSnapshots(source)})`;
  const inserted = `new_${table.name} AS (${upsert(table, source)})`;
  return table === TABLES.chamber ? `${inserted}, ${closeMembers(parameter)}` : inserted;
}

const IS_UNCHANGED = `lead IS NULL AND EXISTS (SELECT FROM same_log) AND NOT ${hasEvent('did', 'unchanged_at + 1')}`;

const CLOSED: Columns = { chamber_id: 'integer', is_committed: 'boolean', lead: 'text' };

function closeMembers(parameter: string): string {
  return `closed_members AS (
  UPDATE members SET is_open = false FROM ${POSTGRES.listed(parameter, CLOSED)}
  WHERE ${IS_WRITTEN} AND is_committed AND members.chamber_id = listed.chamber_id AND is_open
)`;
}
