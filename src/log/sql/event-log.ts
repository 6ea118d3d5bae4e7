// The parts that both drivers' event logs share: all reads, and the snapshots. Each driver adds its append.
import { crc32 } from 'node:zlib';
import { STATE_VERSION } from '../../../projections/snapshot.ts';
import { HIDDEN_KEY_CHARS } from '../../crypto/http-signature.ts';
import type { NodeRef } from '../../crypto/merkle.ts';
import { type DamagedStreams, matchesChecksum, type StoredNodes, type StreamDamaged } from '../damage.ts';
import {
  ALL_CHAMBERS,
  type AppendBatch,
  type AppendResult,
  type EventLog,
  type OrderedPage,
  type Page,
  type Snapshot,
} from '../log.ts';
import { PAGE_BYTES } from '../pages.ts';
import { ReadQueue } from '../read-queue.ts';
import type { SignatureFilter } from '../signature-filter.ts';
import type { StreamId } from '../stream-id.ts';
import { type Columns, type Dialect, jsonRows, type Sql, type SqlValue, toStream } from './sql.ts';
import { type Row, SNAPSHOTS, upsert } from './tables.ts';

export interface EventLogParts {
  readonly logId: string;
  readonly sql: Sql;
  readonly damagedStreams: DamagedStreams;
  /** The signatures that this process has seen in the log. */
  readonly seen: SignatureFilter;
  readonly chamberIdMin: number;
}

export interface StoredLine {
  readonly stream: string | number;
  readonly event_id: number;
  readonly line: Buffer;
  readonly line_crc: number | null;
}

export function findDamage(
  damagedStreams: DamagedStreams,
  { stream, event_id, line, line_crc }: StoredLine,
): StreamDamaged | undefined {
  if (matchesChecksum(line, line_crc)) return undefined;
  return damagedStreams.record(toStream(stream), event_id, `event ${event_id} fails its checksum`);
}

export abstract class SqlEventLog implements EventLog {
  readonly readQueue = new ReadQueue();
  readonly logId: string;
  readonly damagedStreams: DamagedStreams;
  readonly #parts: EventLogParts;
  readonly #statements: ReturnType<typeof statementsFor>;

  constructor(parts: EventLogParts) {
    this.logId = parts.logId;
    this.damagedStreams = parts.damagedStreams;
    this.#parts = parts;
    this.#statements = statementsFor(parts.sql.dialect);
  }

  abstract append(batch: AppendBatch): Promise<AppendResult>;
  abstract find(signatureKeys: readonly string[]): Promise<AppendResult['found']>;
  /** Assigns places to the lines that have none. Returns false if some lines can't get a place now. */
  protected abstract placeLines(): Promise<boolean>;
  /** Returns the error for an event that may be in the log but can't get a place now. */
  protected abstract unplaced(): Error;
  /** Runs a query for lines, ordered by a column, and returns the rows up to the one that reaches PAGE_BYTES. */
  protected abstract readLines<Row extends StoredLine>(
    order: 'event_id' | 'place',
    text: string,
    values: readonly SqlValue[],
  ): Promise<readonly Row[]>;
  /** Changes snapshots, whose loss costs only time. */
  protected abstract write(text: string, values: readonly SqlValue[]): Promise<unknown>;

  mayContain(signatureKey: string): boolean {
    return signatureKey.length === HIDDEN_KEY_CHARS || this.#parts.seen.mayContain(signatureKey);
  }

  #key(stream: StreamId): string | number {
    return this.#parts.sql.dialect.streamKey(stream);
  }

  async lastEventId(stream: StreamId): Promise<number> {
    const { sql, chamberIdMin } = this.#parts;
    if (stream !== ALL_CHAMBERS) {
      const [row] = await sql.query<HeadRow>('SELECT max(event_id) AS head FROM events WHERE stream = $1', [
        this.#key(stream),
      ]);
      return row?.head ?? 0;
    }
    const [row] = await sql.query<HeadRow>('SELECT max(chamber_id) AS head FROM chambers');
    return Math.max(row?.head ?? 0, chamberIdMin - 1);
  }

  async readPage(stream: StreamId, after: number, limit: number): Promise<Page> {
    const rows = await this.readLines<StoredLine>('event_id', this.#statements.page, [this.#key(stream), after, limit]);
    for (const [index, { event_id: eventId }] of rows.entries()) {
      const expected = after + index + 1;
      if (eventId !== expected) throw this.damagedStreams.record(stream, expected, `event ${expected} is missing`);
    }
    return { ndjson: this.#join(rows), count: rows.length };
  }

  async readAll(after: number, limit: number): Promise<OrderedPage> {
    const end = Math.min(after + PLACES_PER_PAGE, await this.lastPlace());
    const rows = await this.readLines<StoredLine & PlaceRow>('place', this.#statements.all, [after, end, limit]);
    const ndjson = this.#join(rows);
    const isCut = rows.length === limit || ndjson.length >= PAGE_BYTES;
    return { ndjson, count: rows.length, last: isCut ? (rows.at(-1)?.place ?? after) : Math.max(after, end) };
  }

  #join(rows: readonly StoredLine[]): Buffer {
    const parts: Buffer[] = [];
    for (const row of rows) {
      const damage = findDamage(this.damagedStreams, row);
      if (damage !== undefined) throw damage;
      parts.push(row.line, LINE_BREAK);
    }
    return Buffer.concat(parts);
  }

  async lastPlace(): Promise<number> {
    await this.placeLines();
    const [row] = await this.#parts.sql.query<PlaceRow>(this.#statements.lastPlace);
    return row?.place ?? 0;
  }

  async placeOf(stream: StreamId, eventId: number): Promise<number | undefined> {
    const isComplete = await this.placeLines();
    const [row] = await this.#parts.sql.query<PlaceRow>(this.#statements.placeOf, [this.#key(stream), eventId]);
    if (row === undefined && !isComplete) throw this.unplaced();
    return row?.place;
  }

  async readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]> {
    if (refs.length === 0) return [];
    const events = refs.map(({ eventId }) => ({ event: eventId }));
    const values = [this.#key(chamberId), jsonRows(EVENT_IDS, events)];
    const rows = await this.#parts.sql.query<NodesRow>(this.#statements.nodes, values);
    const byEvent = new Map(rows.map((row) => [row.event_id, row]));
    return refs.map((ref) => {
      const stored = byEvent.get(ref.eventId);
      if (stored === undefined)
        throw this.damagedStreams.record(chamberId, ref.eventId, `event ${ref.eventId} is missing`);
      return this.damagedStreams.requireNode(chamberId, ref, stored);
    });
  }

  async readSnapshot(stream: StreamId): Promise<Snapshot | undefined> {
    const text = 'SELECT * FROM snapshots WHERE stream = $1';
    const [row] = await this.#parts.sql.query<SnapshotRow>(text, [String(stream)]);
    const isUsable = row?.version === STATE_VERSION && row.crc === crc32(row.state);
    return isUsable ? { eventId: row.event_id, leaf: row.leaf, state: row.state } : undefined;
  }

  abstract writeSnapshot(stream: StreamId, snapshot: Snapshot, withheldThrough: number): Promise<void>;

  async dropSnapshot(stream: StreamId): Promise<void> {
    await this.write('DELETE FROM snapshots WHERE stream = $1', [String(stream)]);
  }
}

const LINE_BREAK = Buffer.from('\n');
/** Limits the account lines that a page over all chambers skips. */
const PLACES_PER_PAGE = 4_000;

const EVENT_IDS: Columns = { event: 'integer' };

function statementsFor({ lines, places, placedLines, listed }: Dialect) {
  return {
    page: `SELECT stream, event_id, line, line_crc FROM ${lines} WHERE stream = $1 AND event_id > $2 ORDER BY event_id LIMIT $3`,
    // DIDs sort after ':', and chamber ids before it.
    all: `SELECT place, stream, event_id, line, line_crc FROM ${placedLines}
      WHERE place > $1 AND place <= $2 AND stream < ':' ORDER BY place LIMIT $3`,
    lastPlace: `SELECT coalesce(max(place), 0) AS place FROM ${places}`,
    placeOf: `SELECT place FROM ${places} WHERE stream = $1 AND event_id = $2`,
    nodes: `SELECT event_id, nodes, nodes_crc FROM ${lines} WHERE stream = $1
      AND event_id IN (SELECT event FROM ${listed('$2', EVENT_IDS)})`,
  };
}

export function upsertSnapshots(source: string): string {
  return `${upsert(SNAPSHOTS, source)} WHERE snapshots.event_id <= excluded.event_id`;
}

export const WRITE_SNAPSHOT = upsertSnapshots('VALUES ($1, $2, $3, $4, $5, $6)');

/** The properties are in column order, on which snapshotValues relies. */
export function snapshotRow(stream: StreamId, { eventId, leaf, state }: Snapshot): Row {
  return { stream: String(stream), event_id: eventId, version: STATE_VERSION, leaf, state, crc: crc32(state) };
}

export function snapshotValues(stream: StreamId, snapshot: Snapshot): readonly SqlValue[] {
  return Object.values(snapshotRow(stream, snapshot));
}

interface SnapshotRow {
  readonly event_id: number;
  readonly version: number;
  readonly leaf: Buffer;
  readonly state: string;
  readonly crc: number;
}

interface HeadRow {
  readonly head: number | null;
}

interface PlaceRow {
  readonly place: number;
}

type NodesRow = StoredNodes & Pick<StoredLine, 'event_id'>;
