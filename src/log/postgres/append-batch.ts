// A batch of entries and registrations as the statement of an append takes it: append-statement.ts.
import { crc32 } from 'node:zlib';
import type { LogEntry, Registration } from '../log.ts';
import { snapshotRow } from '../sql/event-log.ts';
import { CONTACTS, LatestRows, REGISTRATIONS, type Row, rowOf, SNAPSHOTS, TABLES } from '../sql/tables.ts';
import type { StreamId } from '../stream-id.ts';
import { BIGINT, BYTEA, type ElementType, encode, LATIN1, TEXT } from './arrays.ts';

/** What an append writes, in the order in which it is written. */
export interface Batch {
  readonly entries: readonly LogEntry[];
  readonly registrations: readonly Registration[];
}

/** What is written as a whole or not at all: the lead, and what follows it. */
export type Chain = readonly LogEntry[];

/** The entries by the stream of their lead. */
export function chainsOf(entries: readonly LogEntry[]): ReadonlyMap<string, Chain> {
  const created = new Set<StreamId>();
  return Map.groupBy(entries, (entry) => {
    if (isCreation(entry)) created.add(entry.stream);
    const [firstCreated] = created;
    return String(created.has(entry.stream) ? firstCreated : entry.stream);
  });
}

export function isCreation(entry: LogEntry): entry is LogEntry & { readonly stream: number } {
  return typeof entry.stream === 'number' && entry.eventId === 1;
}

export function isMoveInChamber({ stream, eventId }: LogEntry): boolean {
  return typeof stream === 'number' && eventId > 1;
}

/** An entry as the statement takes it. */
export interface BatchRow {
  readonly entry: LogEntry;
  readonly lead: string;
  /** The event that has to be there before a chain's lead; null for the rest. */
  readonly before: Pick<LogEntry, 'stream' | 'eventId'> | null;
  readonly lease: string | null;
}

export function rowsOf(chains: ReadonlyMap<string, Chain>, chamberIdMin: number): readonly BatchRow[] {
  return [...chains].flatMap(([lead, chain]) => {
    const { lease = null } = chain.find((entry) => entry.lease !== undefined) ?? {};
    return chain.map((entry, index) => {
      return { entry, lead, before: index === 0 ? predecessor(entry, chamberIdMin) : null, lease };
    });
  });
}

/** Number 0 of a stream is always there. */
function predecessor(lead: LogEntry, chamberIdMin: number): Pick<LogEntry, 'stream' | 'eventId'> {
  if (isCreation(lead) && lead.stream > chamberIdMin) return { stream: lead.stream - 1, eventId: 1 };
  return { stream: lead.stream, eventId: lead.eventId - 1 };
}

/** What is written to other tables with the entries of a lead. */
export function otherRows(
  rows: readonly BatchRow[],
  registrations: readonly Registration[],
  chains: ReadonlyMap<string, Chain>,
): ReturnType<LatestRows['byTable']> {
  const others = new LatestRows();
  // All of them: two that have one signature are a defect of the caller, for which the statement fails.
  const signed: Row[] = [];
  for (const { entry, lead } of rows) {
    const { stream, listings, snapshot } = entry;
    for (const listing of listings) others.add(TABLES[listing.kind], { ...rowOf(listing), lead });
    if (snapshot !== undefined) others.add(SNAPSHOTS, { ...snapshotRow(stream, snapshot), lead });
  }
  for (const { did, eventId, signature, operatorEmail, unchangedAt = null } of registrations) {
    const basis = { did, lead: chains.has(did) ? did : null, unchanged_at: unchangedAt };
    const row = { ...basis, event_id: eventId, covers_email: operatorEmail !== undefined };
    if (signature !== null) signed.push({ ...row, signature_hash: Buffer.from(signature, 'latin1') });
    if (operatorEmail !== undefined) others.add(CONTACTS, { ...basis, operator_email: Buffer.from(operatorEmail) });
  }
  return signed.length === 0 ? others.byTable() : [...others.byTable(), [REGISTRATIONS, signed]];
}

export interface BatchColumn {
  readonly name: string;
  readonly type: string;
  readonly encode: (rows: readonly BatchRow[]) => Buffer;
}

/** The functions are made once: V8 would compile those of each batch again. */
function column<Value>(name: string, type: ElementType<Value>, read: (row: BatchRow) => Value | null): BatchColumn {
  return { name, type: type.name, encode: (rows) => encode(type, rows.map(read)) };
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
export const EVENT = EVENT_COLUMNS.map(({ name }) => name).join(', ');

const PLAIN_BATCH = [
  ...EVENT_COLUMNS,
  column('before_event', BIGINT, ({ before }) => before?.eventId ?? null),
  column('account', TEXT, ({ entry }) => entry.account?.did ?? null),
  column('account_event', BIGINT, ({ entry }) => entry.account?.lastEventId ?? null),
];
const BATCH = [
  ...PLAIN_BATCH,
  column('lead', TEXT, ({ lead }) => lead),
  column('before_stream', TEXT, ({ before }) => before && String(before.stream)),
  column('lease', TEXT, ({ lease }) => lease),
];

export function columnsOfBatch(isPlain: boolean): readonly BatchColumn[] {
  return isPlain ? PLAIN_BATCH : BATCH;
}
