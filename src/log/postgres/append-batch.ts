// Encodes a batch as the parameters of the append statement (append-statement.ts).
import { crc32 } from 'node:zlib';
import { isCreation, type LogEntry, type Registration } from '../log.ts';
import { snapshotRow } from '../sql/event-log.ts';
import { CONTACTS, LatestRows, REGISTRATIONS, type Row, rowOf, SNAPSHOTS, TABLES } from '../sql/tables.ts';
import type { StreamId } from '../stream-id.ts';
import { type ArrayColumn, BIGINT, column, EVENT_COLUMNS, type EventRow, TEXT } from './arrays.ts';

/** The rows that an append writes, in this order. */
export interface Batch {
  readonly entries: readonly LogEntry[];
  readonly registrations: readonly Registration[];
}

/** Entries that are written all or nothing: the lead, and the entries after it. */
export type Chain = readonly LogEntry[];

/** Groups entries into chains, by the stream of their lead. All created chambers are one chain. */
export function chainsOf(entries: readonly LogEntry[]): ReadonlyMap<string, Chain> {
  const created = new Set<StreamId>();
  return Map.groupBy(entries, (entry) => {
    if (isCreation(entry)) created.add(entry.stream);
    const [firstCreated] = created;
    return String(created.has(entry.stream) ? firstCreated : entry.stream);
  });
}

type EventKey = Pick<LogEntry, 'stream' | 'eventId'>;

interface BatchRow extends EventRow {
  readonly lead: string;
  /** The event that must be in the log before a lead; null for the rest of a chain. */
  readonly before: EventKey | null;
  readonly account: LogEntry['account'];
  readonly lease: string | null;
}

export function rowsOf(chains: ReadonlyMap<string, Chain>, chamberIdMin: number): readonly BatchRow[] {
  return [...chains].flatMap(([lead, chain]) => {
    const { lease = null } = chain.find((entry) => entry.lease !== undefined) ?? {};
    return chain.map(({ line, nodes, ...entry }, index) => ({
      stream: entry.stream,
      event_id: entry.eventId,
      at: entry.at,
      line,
      signature: entry.signature === null ? null : Buffer.from(entry.signature, 'latin1'),
      nodes,
      line_crc: crc32(line),
      nodes_crc: nodes && crc32(nodes),
      lead,
      before: index === 0 ? predecessor(entry, chamberIdMin) : null,
      account: entry.account,
      lease,
    }));
  });
}

/** Event 0 of a stream counts as present. */
function predecessor({ stream, eventId }: EventKey, chamberIdMin: number): EventKey {
  const isAfterChamber = typeof stream === 'number' && eventId === 1 && stream > chamberIdMin;
  return isAfterChamber ? { stream: stream - 1, eventId: 1 } : { stream, eventId: eventId - 1 };
}

export const BATCH_COLUMNS: readonly ArrayColumn<BatchRow>[] = [
  ...EVENT_COLUMNS,
  column('lead', TEXT, ({ lead }) => lead),
  column('before_stream', TEXT, ({ before }) => before && String(before.stream)),
  column('before_event', BIGINT, ({ before }) => before?.eventId ?? null),
  column('account', TEXT, ({ account }) => account?.did ?? null),
  column('account_event', BIGINT, ({ account }) => account?.lastEventId ?? null),
  column('lease', TEXT, ({ lease }) => lease),
];

/** Returns the rows of the other tables, each with the lead of its chain. */
export function otherRows(
  chains: ReadonlyMap<string, Chain>,
  registrations: readonly Registration[],
): ReturnType<LatestRows['byTable']> {
  const others = new LatestRows();
  for (const [lead, chain] of chains) {
    for (const { stream, listings, snapshot } of chain) {
      for (const listing of listings) others.add(TABLES[listing.kind], { ...rowOf(listing), lead });
      if (snapshot !== undefined) others.add(SNAPSHOTS, { ...snapshotRow(stream, snapshot), lead });
    }
  }
  // Keeps duplicates: if two have the same signature, the caller is at fault, and the statement fails.
  const signed: Row[] = [];
  for (const { did, eventId, signature, operatorEmail, unchangedAt = null } of registrations) {
    const basis = { did, lead: chains.has(did) ? did : null, unchanged_at: unchangedAt };
    const row = { ...basis, event_id: eventId, covers_email: operatorEmail !== undefined };
    if (signature !== null) signed.push({ ...row, signature_hash: Buffer.from(signature, 'latin1') });
    if (operatorEmail !== undefined) others.add(CONTACTS, { ...basis, operator_email: Buffer.from(operatorEmail) });
  }
  return signed.length === 0 ? others.byTable() : [...others.byTable(), [REGISTRATIONS, signed]];
}
