// The statement of a batch, with the parts that the batch needs, and its parameters: append.ts says why it is right.
import { crc32 } from 'node:zlib';
import type pg from 'pg';
import type { Millis } from '../../vocabulary/values.ts';
import type { LogEntry, Registration } from '../log.ts';
import type { StreamId } from '../stream-id.ts';
import { BIGINT, BYTEA, type ElementType, encode, LATIN1, TEXT } from './arrays.ts';
import { DERIVED_INSERTS, derivedRows } from './derived-rows.ts';
import { readLogId, sameLog } from './log-identity.ts';
import { DURABLY } from './session.ts';
import { OtherLog } from './unusable-database.ts';

/** The entries of an append, in the order in which they are written. */
export interface Batch {
  entries: readonly LogEntry[];
  registrations: readonly Registration[];
}

/** What is written as a whole or not at all: the lead, and what follows it. */
export type Chain = readonly LogEntry[];

interface InsertOptions {
  readonly logId: string;
  /** Without it the statement fails for a competitor. */
  readonly isSearch: boolean;
  /** The lowest id of a new chamber, which needs no chamber before it. */
  readonly chamberIdMin: number;
  /** By the database's clock: changes of accounts are not written later. */
  readonly accountsUntil: Millis;
}

/** Runs the statement; returns the chains whose lead was not inserted. */
export async function insert(
  client: pg.Client,
  { entries, registrations }: Batch,
  { logId, isSearch, chamberIdMin, accountsUntil }: InsertOptions,
): Promise<readonly Chain[]> {
  const chains = chainsOf(entries);
  const rows = rowsOf(chains, chamberIdMin);
  const written = [...derivedRows(rows), ...registrationRows(registrations, chains)];
  const parts: Part[] = written.map(([part]) => part);
  if (isSearch) parts.push('search');
  if (rows.some(({ lease }) => lease !== null)) parts.push('held');
  if (rows.some(({ entry }) => isCreation(entry))) parts.push('creation');
  if (rows.some(({ entry }) => typeof entry.stream === 'string')) parts.push('account');
  // The server keeps 63 characters of a statement's name; three of each part tell them apart.
  const { rows: found } = await client.query<{ readonly lead: string | null }>({
    name: ['append', ...parts.map((part) => part.slice(0, 3))].join(' '),
    text: statementFor(parts),
    values: [
      logId,
      ...columnsFor(parts).map((column) => column.encode(rows)),
      ...written.map(([, json]) => json),
      ...(parts.includes('account') ? [accountsUntil] : []),
    ],
  });
  if (found.some(({ lead }) => lead === null)) throw new OtherLog(await readLogId(client), logId);
  const lost = new Set(found.map(({ lead }) => lead));
  return [...chains].filter(([lead]) => lost.has(lead)).map(([, chain]) => chain);
}

/** An entry as the statement takes it. */
interface Row {
  readonly entry: LogEntry;
  readonly lead: string;
  /** The event that has to be there before a chain's lead; null for the rest. */
  readonly before: Pick<LogEntry, 'stream' | 'eventId'> | null;
  readonly lease: string | null;
}

function rowsOf(chains: ReadonlyMap<string, Chain>, chamberIdMin: number): readonly Row[] {
  const rows: Row[] = [];
  for (const [lead, chain] of chains) {
    const { lease = null } = chain.find((entry) => entry.lease !== undefined) ?? {};
    for (const entry of chain)
      rows.push({ entry, lead, before: entry === chain[0] ? predecessor(entry, chamberIdMin) : null, lease });
  }
  return rows;
}

/** The entries by the stream of their lead. */
function chainsOf(entries: readonly LogEntry[]): ReadonlyMap<string, Chain> {
  const created = new Set<StreamId>();
  return Map.groupBy(entries, (entry) => {
    if (isCreation(entry)) created.add(entry.stream);
    const [firstCreated] = created;
    return String(created.has(entry.stream) ? firstCreated : entry.stream);
  });
}

/** Number 0 of a stream is always there. */
function predecessor(lead: LogEntry, chamberIdMin: number): Pick<LogEntry, 'stream' | 'eventId'> {
  if (isCreation(lead) && lead.stream > chamberIdMin) return { stream: lead.stream - 1, eventId: 1 };
  return { stream: lead.stream, eventId: lead.eventId - 1 };
}

export function isCreation(entry: LogEntry): entry is LogEntry & { readonly stream: number } {
  return typeof entry.stream === 'number' && entry.eventId === 1;
}

function registrationRows(
  registrations: readonly Registration[],
  chains: ReadonlyMap<string, unknown>,
): readonly (readonly [table: 'registrations' | 'contacts', rows: string])[] {
  const hex = (text: string, encoding: BufferEncoding) => Buffer.from(text, encoding).toString('hex');
  const signed: object[] = [];
  const contacts = new Map<string, object>();
  for (const { did, eventId, signature, operatorEmail, unchangedAt = null } of registrations) {
    const lead = chains.has(did) ? did : null;
    const coversEmail = operatorEmail !== undefined;
    const key = { lead, did, unchangedAt };
    if (signature !== null) signed.push({ ...key, eventId, hash: hex(signature, 'latin1'), coversEmail });
    if (coversEmail) contacts.set(did, { ...key, email: hex(operatorEmail, 'utf8') });
  }
  const inOrderOfDids = [...contacts].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, contact]) => contact);
  const tables = [
    ['registrations', signed],
    ['contacts', inOrderOfDids],
  ] as const;
  return tables.flatMap(([table, rows]) => (rows.length === 0 ? [] : [[table, JSON.stringify(rows)]]));
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly encode: (rows: readonly Row[]) => Buffer;
  /** Left out of other batches. */
  readonly only?: Part;
}

/** The functions are made once: V8 would compile those of each batch again. */
function column<Value>(name: string, type: ElementType<Value>, read: (row: Row) => Value | null, only?: Part): Column {
  return { name, type: type.name, encode: (rows) => encode(type, rows.map(read)), ...(only && { only }) };
}

const EVENT_COLUMNS = [
  column('stream', TEXT, ({ entry }) => String(entry.stream)),
  column('event_id', BIGINT, ({ entry }) => entry.eventId),
  column('at', BIGINT, ({ entry }) => entry.at),
  column('line', BYTEA, ({ entry }) => entry.line),
  column('signature', LATIN1, ({ entry }) => entry.signature),
  column('nodes', BYTEA, ({ entry }) => entry.nodes),
  column('line_crc', BIGINT, ({ entry }) => crc32(entry.line)),
  column('nodes_crc', BIGINT, ({ entry: { nodes } }) => nodes && crc32(nodes)),
];
const EVENT = EVENT_COLUMNS.map(({ name }) => name).join(', ');

const COLUMNS = [
  ...EVENT_COLUMNS,
  column('before_event', BIGINT, ({ before }) => before?.eventId ?? null),
  column('account', TEXT, ({ entry }) => entry.account?.did ?? null),
  column('account_event', BIGINT, ({ entry }) => entry.account?.lastEventId ?? null),
  // Both are the stream if nothing is created.
  column('lead', TEXT, ({ lead }) => lead, 'creation'),
  column('before_stream', TEXT, ({ before }) => before && String(before.stream), 'creation'),
  column('lease', TEXT, ({ lease }) => lease, 'held'),
  column('changed', TEXT, ({ entry: { stream } }) => (typeof stream === 'string' ? stream : null), 'account'),
];

function columnsFor(parts: readonly Part[]): readonly Column[] {
  return COLUMNS.filter(({ only }) => only === undefined || parts.includes(only));
}

const LOST = 'lead IN (SELECT lead FROM lost)';
const WON = 'IN (SELECT stream FROM written)';

/** Returns the leads that were not inserted, and null if the database holds another log: then nothing is written. Only what a batch needs: each part costs the server as much as an event. */
function statementFor(parts: readonly Part[]): string {
  const only = (part: Part, text: string) => (parts.includes(part) ? text : '');
  const columns = columnsFor(parts);
  const written = parts.filter((part) => part in INSERTS) as readonly WrittenPart[];
  const inserts = written.map((part, index) => `, ${INSERTS[part](`$${columns.length + 2 + index}`, WON)}`);
  return `
WITH ${sameLog('$1')}, ${DURABLY.cte}, batch AS MATERIALIZED (
  SELECT *${parts.includes('creation') ? '' : ', stream AS lead, stream AS before_stream'}
  FROM unnest(${columns.map(({ type }, index) => `$${index + 2}::${type}[]`).join(', ')})
    WITH ORDINALITY AS rows (${columns.map(({ name }) => name).join(', ')}, place)
)${only('held', HELD)}${only('account', LOCKED)}, lost AS MATERIALIZED (
  SELECT lead FROM batch${only('account', ', (SELECT count(lock) AS locks FROM locked) AS locked')}
  WHERE NOT EXISTS (SELECT FROM same_log) OR (SELECT event_id FROM events AS e WHERE e.stream = account AND e.event_id = account_event + 1) IS NOT NULL
    OR account IS NOT NULL AND ${only('account', 'locks IS NOT NULL AND ')}NOT pg_try_advisory_xact_lock_shared(hashtextextended(account, 0))
    OR before_event > 0 AND (SELECT event_id FROM events AS e WHERE e.stream = before_stream AND e.event_id = before_event) IS NULL
    ${only('held', 'OR lease IS NOT NULL AND lease NOT IN (SELECT holder FROM held)')}
    ${only('account', `OR changed IS NOT NULL AND extract(epoch FROM clock_timestamp()) * 1000 > $${columns.length + 2 + written.length}::float8`)}
    ${only('search', 'OR (SELECT event_id FROM events AS e WHERE e.signature = batch.signature) IS NOT NULL')}
), written AS (
  INSERT INTO events (${EVENT})
  SELECT ${EVENT} FROM batch WHERE NOT ${LOST} ${only('search', 'AND before_event IS NOT NULL')}
  ORDER BY place
  ${only('search', 'ON CONFLICT DO NOTHING')}
  RETURNING stream
)${only('search', REST)}, without_place AS (
  INSERT INTO unplaced_events SELECT stream, event_id FROM batch WHERE lead ${WON} ORDER BY place
)${inserts.join('')}
SELECT lead FROM ${parts.includes('search') ? `batch WHERE NOT lead ${WON}` : 'lost'}
UNION ALL SELECT NULL WHERE NOT EXISTS (SELECT FROM same_log) ${DURABLY.evaluated}`;
}

const HELD = `, held AS MATERIALIZED (
  SELECT holder FROM leases WHERE holder IN (SELECT lease FROM batch) FOR SHARE
)`;

/** In one order at all nodes, and before any lock that is shared: that one is tried only once the number of these is there. */
const LOCKED = `, locked AS MATERIALIZED (
  SELECT pg_advisory_xact_lock(key) AS lock
  FROM (SELECT DISTINCT hashtextextended(changed, 0) AS key FROM batch WHERE changed IS NOT NULL ORDER BY 1) AS keys
)`;

/** What follows a lead, whose key may be taken. */
const REST = `, rest AS (
  INSERT INTO events (${EVENT})
  SELECT ${EVENT} FROM batch WHERE before_event IS NULL AND lead ${WON} ORDER BY place
)`;

const IS_UNCHANGED = `lead IS NULL AND EXISTS (SELECT FROM same_log) AND (SELECT event_id FROM events AS e WHERE e.stream = did AND e.event_id = "unchangedAt" + 1) IS NULL`;

const INSERTS = {
  ...DERIVED_INSERTS,
  registrations: (rows: string, won: string) => `new_registrations AS (
  INSERT INTO registrations SELECT decode(hash, 'hex'), did, "eventId", "coversEmail"
  FROM json_to_recordset(${rows}::json) AS rows (lead text, did text, "unchangedAt" bigint, "eventId" bigint, hash text,
    "coversEmail" boolean)
  WHERE lead ${won} OR ${IS_UNCHANGED}
)`,
  contacts: (rows: string, won: string) => `new_contacts AS (
  INSERT INTO contacts SELECT did, decode(email, 'hex')
  FROM json_to_recordset(${rows}::json) AS rows (lead text, did text, "unchangedAt" bigint, email text)
  WHERE lead ${won} OR ${IS_UNCHANGED}
  ON CONFLICT (did) DO UPDATE SET operator_email = excluded.operator_email
)`,
} as const;

type WrittenPart = keyof typeof INSERTS;
type Part = WrittenPart | 'search' | 'held' | 'creation' | 'account';
