// Verifies and folds every stream of a log from its first event, one stream after another, so that memory holds the state of only one.
// Writes the resulting rows to the derived tables, or, for fsck, to temporary tables that are compared with them.
import { crc32 } from 'node:zlib';
import { listingsOf } from '../../../projections/listings.ts';
import { encodeState, isSnapshotDue, STATE_VERSION } from '../../../projections/snapshot.ts';
import { fromHex, toHex } from '../../vocabulary/values.ts';
import {
  EMPTY_STREAM,
  type Fault,
  registrationKey,
  type StoredEvent,
  type VerifiedStream,
  verifyEvent,
} from '../stored-stream.ts';
import type { StreamId } from '../stream-id.ts';
import { snapshotRow } from './event-log.ts';
import { type Columns, type Dialect, jsonRows, type SqlTransaction, type Table, toStream } from './sql.ts';
import {
  columnsOf,
  createTable,
  insertListed,
  LatestRows,
  type Row,
  rowOf,
  SNAPSHOTS,
  TABLES,
  table,
} from './tables.ts';

export interface RebuildOptions {
  /** `stored`: the derived tables, which must be empty. `temporary`: tables created here; stored snapshots are verified too. */
  readonly into: 'stored' | 'temporary';
  /** Called only with the first fault of each stream, because later events build on earlier ones. */
  readonly onFault: (fault: Fault) => void;
  readonly onEvents?: (events: number) => void;
}

export interface VerifiedLog {
  readonly events: number;
  readonly chambers: number;
  readonly accounts: number;
  /** Streams with a fault. Their rows are incomplete. */
  readonly badStreams: ReadonlySet<StreamId>;
}

/** A temporary table of the registrations in valid streams. */
export const FOLDED_REGISTRATIONS: Table = table({
  name: 'folded_registrations',
  key: ['stream', 'event_id'],
  columns: { stream: 'text', event_id: 'integer' },
});

/** A temporary table of the stubs in valid streams. */
export const FOLDED_STUBS: Table = { ...FOLDED_REGISTRATIONS, name: 'folded_stubs' };

export function temporaryTable<Described extends Table>(table: Described): Described {
  return { ...table, name: `folded_${table.name}` };
}

export async function rebuildDerivedTables(transaction: SqlTransaction, options: RebuildOptions): Promise<VerifiedLog> {
  const isStored = options.into === 'stored';
  const { dialect } = transaction;
  if (!isStored) {
    const tables = [...Object.values(TABLES).map(temporaryTable), FOLDED_REGISTRATIONS, FOLDED_STUBS];
    await transaction.run(tables.map((each) => createTable(dialect, each, 'TEMP TABLE')).join('\n'));
  }
  const verifier = new StreamVerifier(options.onFault);
  for await (const page of transaction.pages<StoredRow>(isStored ? linesOf(dialect) : linesWithSnapshots(dialect))) {
    const rows = new DerivedRows();
    const registrations: SignedRegistration[] = [];
    for (const row of page) {
      const folded = verifier.add(row);
      if (folded === undefined) continue;
      rows.add(folded);
      const key = registrationKey(folded.after.event);
      if (key !== undefined) registrations.push({ row, key });
    }
    for (const row of await findMissingKeys(transaction, registrations)) {
      verifier.fail(row, new Error('its signature is not in the table registrations'));
    }
    for (const [written, list] of isStored ? rows.stored() : rows.checked()) {
      if (list.length === 0) continue;
      await transaction.query(insertListed(dialect, written), [jsonRows(columnsOf(written), list)]);
    }
    options.onEvents?.(verifier.events);
  }
  const [members, chambers] = [TABLES.member, TABLES.chamber].map(
    (each) => (isStored ? each : temporaryTable(each)).name,
  );
  await transaction.run(`UPDATE ${members} SET is_open = false
    WHERE chamber_id IN (SELECT chamber_id FROM ${chambers} WHERE is_committed)`);
  return verifier;
}

/** Lines that another program appended may lack checksums and times. */
interface StoredRow extends Omit<StoredEvent, 'stream'> {
  readonly stream: string | number;
  readonly at: number | null;
  readonly line_crc: number | null;
  readonly nodes_crc: number | null;
  /** Present only if places follow the order of the commits. */
  readonly place?: number;
  /** The stream's snapshot, if it was taken after this event. */
  readonly version?: number | null;
  readonly leaf?: Buffer | null;
  readonly state?: string | null;
  readonly state_crc?: number | null;
}

function linesOf({ lines }: Dialect): string {
  return `SELECT * FROM ${lines} ORDER BY stream, event_id`;
}

function linesWithSnapshots({ lines }: Dialect): string {
  return `SELECT * FROM ${lines} LEFT JOIN
      (SELECT stream AS snapshot_of, event_id AS snapshot_at, version, leaf, state, crc AS state_crc FROM snapshots) AS found
    ON snapshot_of = CAST(stream AS text) AND snapshot_at = event_id ORDER BY stream, event_id`;
}

interface VerifiedEvent {
  readonly row: StoredRow;
  readonly before: VerifiedStream;
  readonly after: VerifiedStream;
}

class StreamVerifier implements VerifiedLog {
  events = 0;
  chambers = 0;
  accounts = 0;
  readonly badStreams = new Set<StreamId>();
  readonly #onFault: RebuildOptions['onFault'];
  #stream: StoredRow['stream'] | undefined;
  #verified = EMPTY_STREAM;

  constructor(onFault: RebuildOptions['onFault']) {
    this.#onFault = onFault;
  }

  /** Returns undefined for the first faulty event of a stream and all events after it. */
  add(row: StoredRow): VerifiedEvent | undefined {
    this.events++;
    const stream = toStream(row.stream);
    if (row.stream !== this.#stream) {
      this.#stream = row.stream;
      this.#verified = EMPTY_STREAM;
      this[typeof stream === 'number' ? 'chambers' : 'accounts']++;
    }
    if (this.badStreams.has(stream)) return undefined;
    try {
      const before = this.#verified;
      this.#verified = verifyRow(before, row);
      return { row, before, after: this.#verified };
    } catch (error) {
      this.fail(row, error);
      return undefined;
    }
  }

  fail(row: StoredRow, error: unknown): void {
    const stream = toStream(row.stream);
    if (this.badStreams.has(stream)) return;
    this.badStreams.add(stream);
    const problem = error instanceof Error ? error.message : String(error);
    this.#onFault({ position: row.place ?? null, stream, eventId: row.event_id, problem });
  }
}

function verifyRow(before: VerifiedStream, row: StoredRow): VerifiedStream {
  const { line, nodes, at, line_crc: lineCrc, nodes_crc: nodesCrc } = row;
  const after = verifyEvent(before, { ...row, stream: toStream(row.stream) });
  if (at !== after.at) throw new Error("column at is not the line's ts");
  if (lineCrc !== crc32(line) || nodesCrc !== (nodes && crc32(nodes))) {
    throw new Error('its checksums do not match its line and its tree nodes');
  }
  requireSnapshot(row, after);
  return after;
}

/** Ignores a snapshot of another version, which is never used. */
function requireSnapshot({ version, leaf, state, state_crc: crc }: StoredRow, after: VerifiedStream): void {
  const folded = after.chamber ?? after.account;
  if (typeof state !== 'string' || folded === null || version !== STATE_VERSION) return;
  const isRight = state === encodeState(folded) && leaf && toHex(leaf) === after.headHash;
  if (!isRight || crc !== crc32(state)) throw new Error('table snapshots does not match the log: run chambers rebuild');
}

type Written = readonly [Table, readonly Row[]];

class DerivedRows {
  readonly #rows = new LatestRows();
  readonly #due = new Map<StreamId, VerifiedStream>();
  readonly #registrations: Row[] = [];
  readonly #stubs: Row[] = [];

  add({ row, before, after }: VerifiedEvent): void {
    const stream = toStream(row.stream);
    const folded = after.chamber ?? after.account;
    const listings = after.chamber === null ? [] : listingsOf(before.chamber, after.chamber);
    for (const listing of listings) this.#rows.add(TABLES[listing.kind], rowOf(listing));
    if (folded !== null && isSnapshotDue(folded)) this.#due.set(stream, after);
    if (after.event?.type === 'agent.registered') this.#registrations.push({ stream, event_id: row.event_id });
    if (after.event?.withheld !== undefined) this.#stubs.push({ stream: String(stream), event_id: row.event_id });
  }

  stored(): readonly Written[] {
    const snapshots = [...this.#due].map(([stream, { chamber, account, eventId, headHash }]) => {
      const folded = chamber ?? account;
      const state = folded === null ? '' : encodeState(folded);
      return snapshotRow(stream, { eventId, leaf: fromHex(headHash), state });
    });
    return [...this.#rows.byTable(), [SNAPSHOTS, snapshots]];
  }

  checked(): readonly Written[] {
    const derived = this.#rows.byTable().map(([table, rows]): Written => [temporaryTable(table), rows]);
    return [...derived, [FOLDED_REGISTRATIONS, this.#registrations], [FOLDED_STUBS, this.#stubs]];
  }
}

interface SignedRegistration {
  readonly row: StoredRow;
  /** The hiddenSignatureKey, in bytes. */
  readonly key: Buffer;
}

const REGISTERED: Columns = { signature_hash: 'bytes', did: 'text', event_id: 'integer' };

async function findMissingKeys(
  { dialect, query }: SqlTransaction,
  registrations: readonly SignedRegistration[],
): Promise<readonly StoredRow[]> {
  if (registrations.length === 0) return [];
  const listed = registrations.map(({ row, key }) => ({
    signature_hash: key,
    did: row.stream,
    event_id: row.event_id,
  }));
  const missing = await query<{ readonly place: number }>(
    `SELECT place FROM ${dialect.listed('$1', REGISTERED)} LEFT JOIN registrations USING (signature_hash, did, event_id)
     WHERE covers_email IS NULL`,
    [jsonRows(REGISTERED, listed)],
  );
  return missing.flatMap(({ place }) => registrations[place]?.row ?? []);
}
