// Appends a batch in one transaction of the writer thread. Why it writes exactly what it should:
//
// 1. No other process writes to the file, and transactions run one after another. So data that this process has read from the log stays
//    valid until its next append, and the heads in memory are the heads of the log.
// 2. Nevertheless, the database rejects an event that is not the next one of its stream, a chamber that is not the next one, and a known
//    signature (schema.ts). Then nothing is written, and the batch is retried without the streams whose heads differ.
// 3. Nothing is written from a batch that was decided before a withholding (sql/withholding.ts).
// 4. Known signatures are looked up first, and the filter has no false negatives (signature-filter.ts).
import { crc32 } from 'node:zlib';
import {
  ALL_CHAMBERS,
  type AppendBatch,
  type AppendResult,
  isCreation,
  type LogEntry,
  type Registration,
} from '../log.ts';
import { snapshotValues, WRITE_SNAPSHOT } from '../sql/event-log.ts';
import { CONTACTS, REGISTRATIONS, rowOf, TABLES, upsert } from '../sql/tables.ts';
import type { StreamId } from '../stream-id.ts';
import type { Statement } from './packed.ts';
import { Conflict, type Writer } from './writer.ts';

export interface AppendParts {
  readonly writer: Writer;
  readonly chamberIdMin: number;
  readonly lastEventId: (stream: StreamId) => Promise<number>;
  readonly find: (signatureKeys: readonly string[]) => Promise<AppendResult['found']>;
  /** Returns false only for a signature that is not in the log. */
  readonly mayContain: (signatureKey: string) => boolean;
  /** Returns the number of the log's last withholding. */
  readonly lastWithheld: () => Promise<number>;
}

export async function append(parts: AppendParts, batch: AppendBatch): Promise<AppendResult> {
  const { entries, registrations = [], heads = NO_HEADS, signatures = [], withheldThrough } = batch;
  const keys = [...entries, ...registrations].flatMap(({ signature }) => signature ?? []);
  const asked = [...signatures, ...keys].filter(parts.mayContain);
  // An empty change makes the writer check its files before the signatures are looked up.
  if (keys.length > 0 && asked.length > 0) await parts.writer.change([]);
  const found = await parts.find(asked);
  const conflicts = new Map<StreamId, number>();
  const isKnown = ({ signature }: LogEntry | Registration) => signature !== null && found.has(signature);
  const known = new Set<StreamId>(registrations.filter(isKnown).map(({ did }) => did));
  const repeated = entries.filter((entry) => isKnown(entry) || known.has(entry.stream)).map(({ stream }) => stream);
  await addHeads(parts, conflicts, new Set(repeated), entries);
  for (const [stream, expected] of heads) {
    const head = await parts.lastEventId(stream);
    if (head !== expected) conflicts.set(stream, head);
  }
  for (;;) {
    const written = entries.filter(({ stream }) => !conflicts.has(stream));
    const remembered = registrations.filter(({ did, signature }) => !conflicts.has(did) && !found.has(signature ?? ''));
    if (written.length + remembered.length === 0) return { conflicts, found };
    try {
      await parts.writer.write(statementsOf(written, remembered, parts.chamberIdMin), { withheldThrough });
      return { conflicts, found };
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      const isOutdated = withheldThrough !== undefined && withheldThrough < (await parts.lastWithheld());
      const others = isOutdated
        ? new Set<StreamId>([...written.map(({ stream }) => stream), ...remembered.map(({ did }) => did)])
        : await conflictingStreams(parts, written);
      if (others.size === 0) throw new Error(`the database rejected a batch: ${error.message}`, { cause: error });
      await addHeads(parts, conflicts, others, written);
    }
  }
}

const NO_HEADS: ReadonlyMap<StreamId, number> = new Map();

/** Adds the streams with their heads. If one of them is a new chamber, also adds ALL_CHAMBERS. */
async function addHeads(
  { lastEventId }: AppendParts,
  conflicts: Map<StreamId, number>,
  streams: ReadonlySet<StreamId>,
  entries: readonly LogEntry[],
): Promise<void> {
  for (const stream of streams) conflicts.set(stream, await lastEventId(stream));
  const hasCreation = entries.some((entry) => isCreation(entry) && streams.has(entry.stream));
  if (hasCreation) conflicts.set(ALL_CHAMBERS, await lastEventId(ALL_CHAMBERS));
}

/** Returns the streams whose entries do not follow their last event, and new chambers that do not follow the highest one. */
async function conflictingStreams(
  { lastEventId }: AppendParts,
  entries: readonly LogEntry[],
): Promise<ReadonlySet<StreamId>> {
  const heads = new Map<StreamId, number>();
  const conflicts = new Set<StreamId>();
  let lastChamber = await lastEventId(ALL_CHAMBERS);
  for (const entry of entries) {
    const { stream, eventId } = entry;
    const head = heads.get(stream) ?? (await lastEventId(stream));
    const isNextChamber = !isCreation(entry) || entry.stream === lastChamber + 1;
    if (eventId !== head + 1 || !isNextChamber) conflicts.add(stream);
    else if (isCreation(entry)) lastChamber = entry.stream;
    heads.set(stream, eventId);
  }
  return conflicts;
}

function statementsOf(
  entries: readonly LogEntry[],
  registrations: readonly Registration[],
  chamberIdMin: number,
): readonly Statement[] {
  const statements: Statement[] = [];
  for (const entry of entries) {
    statements.push(insertOf(entry, chamberIdMin));
    for (const listing of entry.listings) {
      const row = rowOf(listing);
      const { columns } = TABLES[listing.kind];
      statements.push({ text: UPSERTS[listing.kind], values: columns.map(({ name }) => row[name] ?? null) });
      if (listing.kind === 'chamber' && listing.isCommitted)
        statements.push({ text: CLOSE_MEMBERS, values: [listing.chamberId] });
    }
    if (entry.snapshot !== undefined)
      statements.push({ text: WRITE_SNAPSHOT, values: snapshotValues(entry.stream, entry.snapshot) });
  }
  for (const { did, eventId, signature, operatorEmail } of registrations) {
    if (operatorEmail !== undefined)
      statements.push({ text: WRITE_CONTACT, values: [did, Buffer.from(operatorEmail)] });
    if (signature === null) continue;
    const hash = Buffer.from(signature, 'latin1');
    statements.push({ text: REMEMBER, values: [hash, did, eventId, operatorEmail !== undefined] });
  }
  return statements;
}

function insertOf(entry: LogEntry, chamberIdMin: number): Statement {
  const { stream, eventId, line, signature, nodes } = entry;
  const [chamberId, account] = typeof stream === 'number' ? [stream, null] : [null, stream];
  const key = signature === null ? null : Buffer.from(signature, 'latin1');
  const values = [chamberId, account, eventId, line, key, nodes, crc32(line), nodes && crc32(nodes)];
  if (!isCreation(entry) || entry.stream === chamberIdMin) return { text: INSERT, values };
  return { text: CREATE, values: [...values, entry.stream - 1], changesMin: 1 };
}

// With the default ABORT, SQLite would copy each page that the insert changes into a statement journal.
const INSERT = `INSERT OR ROLLBACK INTO events (position, chamber_id, account, event_id, line, signature, nodes, line_crc, nodes_crc)
  SELECT (SELECT coalesce(max(position), 0) + 1 FROM events), $1, $2, $3, CAST($4 AS TEXT), $5, $6, $7, $8`;

/** Requires the preceding chamber, so that ids have no gaps. */
const CREATE = `${INSERT} WHERE EXISTS (SELECT 1 FROM events WHERE stream = $9)`;

const UPSERTS = Object.fromEntries(
  Object.entries(TABLES).map(([kind, table]) => {
    const placeholders = table.columns.map((_, index) => `$${index + 1}`);
    return [kind, upsert(table, `VALUES (${placeholders})`)];
  }),
) as Record<keyof typeof TABLES, string>;

const CLOSE_MEMBERS = 'UPDATE members SET is_open = false WHERE chamber_id = $1 AND is_open';
const WRITE_CONTACT = upsert(CONTACTS, 'VALUES ($1, $2)');
const REMEMBER = `INSERT INTO ${REGISTRATIONS.name} VALUES ($1, $2, $3, $4)`;
