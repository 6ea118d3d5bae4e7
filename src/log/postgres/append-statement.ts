// The statement that writes a batch. Why any number of nodes may run it at once:
//
// 1. A stream's rows are written as a chain. The lead, its first entry in the batch, is inserted only if the event before it is
//    there and its own key (stream, event_id) is free; the rest follow only if the lead was inserted. So events have no gaps,
//    and of two nodes that extend a stream from the same event one wins: the other waits for it on the primary key, writes
//    nothing of the stream and reports a conflict.
// 2. The chambers that a batch creates are one chain, by id: the lead must follow the highest chamber, so ids have no gaps and
//    rise in the order of the commits.
// 3. A signature is accepted once: its index is unique, and a chain with a known one is not inserted. A signature belongs to one
//    stream, so one that becomes known meanwhile is that of a competitor, who has taken the lead's key.
// 4. Nothing deadlocks. Only leads wait, and every node inserts them in the same order; what follows a lead can't meet a
//    competitor, who would need that lead. After the events, rows of registrations and contacts are written in order of their keys.
// 5. What a lease's holder decided is written only while it is the holder: the statement locks the lease's row against a new
//    holder, or waits for one and writes nothing. So a new holder sees all that was written before it, and nothing comes after.
// 6. A move is decided on its signer's account too. Its lead is inserted only if no event follows the one that the decision read.
//    So a move may be decided without a look at the log: what is written was decided on heads.
// 7. A registration that changes nothing has no event to compete with: it is remembered only if no event follows the head that it was
//    decided on. If another one remembered its signature first, the statement fails whole.
// 8. Auditors allow 5 s between a change of an account and a later move that was decided without it. So a change is not written once
//    `accountsUntil` is over, by the database's clock. From then on until its commit has ended, as long as that may take, it holds a
//    lock of its account, which a move must be able to share: a change that is not visible yet lets no move pass.
// 9. Nothing is written to another log: the statement reads the database's logId.
import type pg from 'pg';
import type { Millis } from '../../vocabulary/values.ts';
import { upsertSnapshots } from '../sql/event-log.ts';
import type { Table } from '../sql/sql.ts';
import { type Columns, jsonRows } from '../sql/sql.ts';
import { CONTACTS, columnsOf, REGISTRATIONS, SNAPSHOTS, TABLES, upsert } from '../sql/tables.ts';
import {
  type Batch,
  type Chain,
  chainsOf,
  columnsOfBatch,
  EVENT,
  isMoveInChamber,
  otherRows,
  rowsOf,
} from './append-batch.ts';
import { OtherLog } from './database-errors.ts';
import { POSTGRES } from './dialect.ts';
import { readLogId, sameLog } from './requirements.ts';
import { DURABLY, prepared } from './session.ts';

interface InsertOptions {
  readonly logId: string;
  /** Without it the statement fails for a competitor. */
  readonly isSearch: boolean;
  /** The lowest id of a new chamber, which needs no chamber before it. */
  readonly chamberIdMin: number;
  readonly accountsUntil: Millis;
}

/** Runs the statement; returns the chains whose lead was not inserted. */
export async function insert(client: pg.Client, batch: Batch, options: InsertOptions): Promise<readonly Chain[]> {
  const { logId, isSearch, chamberIdMin, accountsUntil } = options;
  const chains = chainsOf(batch.entries);
  const rows = rowsOf(chains, chamberIdMin);
  const others = otherRows(rows, batch.registrations, chains);
  const isPlain = rows.every(({ entry, lease }) => isMoveInChamber(entry) && lease === null);
  const values = [
    ...(isPlain ? [logId] : [logId, accountsUntil]),
    ...columnsOfBatch(isPlain).map((column) => column.encode(rows)),
    ...others.map(([table, written]) => jsonRows(columnsWithLead(table), written)),
  ];
  const text = statementOf({ tables: others.map(([table]) => table), isSearch, isPlain });
  const { rows: found } = await client.query<{ readonly lead: string | null }>(prepared(text, values, 'append'));
  if (found.some(({ lead }) => lead === null)) throw new OtherLog(await readLogId(client), logId);
  const lost = new Set(found.map(({ lead }) => lead));
  return [...chains].filter(([lead]) => lost.has(lead)).map(([, chain]) => chain);
}

interface StatementKind {
  /** Those that are written besides events. */
  readonly tables: readonly Table[];
  readonly isSearch: boolean;
  /** Whether all entries are moves in chambers that are there, decided without a lease: then each stream is a chain of its own. */
  readonly isPlain: boolean;
}

/** Each is made once. */
const statements = new Map<string, string>();

function statementOf(kind: StatementKind): string {
  const key = [kind.isSearch, kind.isPlain, ...kind.tables.map(({ name }) => name)].join();
  const text = statements.get(key) ?? makeStatement(kind);
  statements.set(key, text);
  return text;
}

const IS_WRITTEN = 'lead IN (SELECT stream FROM written)';

/** Returns the leads that were not inserted, and null if the database holds another log: then nothing is written. */
function makeStatement({ tables, isSearch, isPlain }: StatementKind): string {
  const search = (text: string) => (isSearch ? text : '');
  const lostIf = [...LOST_IF, ...(isPlain ? [] : LOST_UNLESS_PLAIN), ...(isSearch ? [IS_KNOWN] : [])];
  const columns = columnsOfBatch(isPlain);
  const firstColumn = isPlain ? 2 : 3;
  const inserts = tables.map((table, index) => `, ${insertInto(table, `$${firstColumn + columns.length + index}`)}`);
  return `
WITH ${sameLog('$1')}, ${DURABLY.cte}, batch AS MATERIALIZED (
  SELECT *${isPlain ? ', stream AS lead, stream AS before_stream' : ''}
  FROM unnest(${columns.map(({ type }, index) => `$${firstColumn + index}::${type}[]`).join(', ')})
    WITH ORDINALITY AS rows (${columns.map(({ name }) => name).join(', ')}, place)
), ${isPlain ? NOTHING_LOCKED : LOCKED}, lost AS MATERIALIZED (
  SELECT lead FROM batch, locked WHERE ${lostIf.join('\n    OR ')}
), written AS (
  INSERT INTO events (${EVENT})
  SELECT ${EVENT} FROM batch WHERE lead NOT IN (SELECT lead FROM lost) ${search('AND before_event IS NOT NULL')}
  ORDER BY place ${search('ON CONFLICT DO NOTHING')} RETURNING stream
)${search(REST)}, without_place AS (
  INSERT INTO unplaced_events SELECT stream, event_id FROM batch WHERE ${IS_WRITTEN} ORDER BY place
)${inserts.join('')}
SELECT lead FROM batch WHERE NOT ${IS_WRITTEN}
UNION ALL SELECT NULL WHERE NOT EXISTS (SELECT FROM same_log) ${DURABLY.evaluated}`;
}

/** DIDs sort after ':', and ids of chambers before it, whatever the database's collation. */
const IS_ACCOUNT = `stream COLLATE "C" > ':'`;

/** Accounts are locked in one order at all nodes, and before any lock that is shared: that one is tried only once their number is there. */
const LOCKED = `held AS MATERIALIZED (
  SELECT holder FROM leases WHERE holder IN (SELECT lease FROM batch) FOR SHARE
), locked AS MATERIALIZED (
  SELECT count(pg_advisory_xact_lock(key)) AS accounts
  FROM (SELECT DISTINCT hashtextextended(stream, 0) AS key FROM batch WHERE ${IS_ACCOUNT} ORDER BY 1) AS keys
)`;

const NOTHING_LOCKED = 'locked AS (SELECT 0 AS accounts)';

/** A scalar, because the server may answer EXISTS by reading the whole table. */
function hasEvent(stream: string, eventId: string): string {
  return `(SELECT event_id FROM events AS e WHERE e.stream = ${stream} AND e.event_id = ${eventId}) IS NOT NULL`;
}

const LOST_IF = [
  'NOT EXISTS (SELECT FROM same_log)',
  `before_event > 0 AND NOT ${hasEvent('before_stream', 'before_event')}`,
  hasEvent('account', 'account_event + 1'),
  'account IS NOT NULL AND accounts >= 0 AND NOT pg_try_advisory_xact_lock_shared(hashtextextended(account, 0))',
];

const LOST_UNLESS_PLAIN = [
  `${IS_ACCOUNT} AND extract(epoch FROM clock_timestamp()) * 1000 > $2::float8`,
  'lease IS NOT NULL AND lease NOT IN (SELECT holder FROM held)',
];

const IS_KNOWN = '(SELECT event_id FROM events AS e WHERE e.signature = batch.signature) IS NOT NULL';

/** What follows a lead, whose key may be taken. */
const REST = `, rest AS (
  INSERT INTO events (${EVENT})
  SELECT ${EVENT} FROM batch WHERE before_event IS NULL AND ${IS_WRITTEN} ORDER BY place
)`;

function columnsWithLead(table: Table): Columns {
  return { ...columnsOf(table), lead: 'text', ...(OF_REGISTRATIONS.includes(table) && { unchanged_at: 'integer' }) };
}

const OF_REGISTRATIONS: readonly Table[] = [REGISTRATIONS, CONTACTS];

/** A part of the WITH that writes the rows which a parameter lists. */
function insertInto(table: Table, parameter: string): string {
  const names = table.columns.map(({ name }) => name);
  const listed = POSTGRES.listed(parameter, columnsWithLead(table));
  const isUnchanged = OF_REGISTRATIONS.includes(table) ? `OR ${IS_UNCHANGED}` : '';
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
