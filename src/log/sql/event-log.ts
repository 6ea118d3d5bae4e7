// What every database's event log has in common: all of its reads, and the snapshots. A database brings its append.
import { crc32 } from 'node:zlib';
import { STATE_VERSION } from '../../../projections/snapshot.ts';
import { HIDDEN_KEY_CHARS } from '../../crypto/http-signature.ts';
import type { NodeRef } from '../../crypto/merkle.ts';
import type { Damages, StoredNodes } from '../damage.ts';
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
import { ReadTurns } from '../read-turns.ts';
import type { SignatureFilter } from '../signature-filter.ts';
import type { StreamId } from '../stream-id.ts';
import { type Columns, type Dialect, jsonRows, type Sql, type SqlValue } from './sql.ts';
import { damageIn, type StoredLine } from './stored-line.ts';
import { type Row, SNAPSHOTS, upsert } from './tables.ts';

export interface EventLogParts {
  readonly logId: string;
  readonly sql: Sql;
  readonly damages: Damages;
  /** Signatures that this process has seen in the log. */
  readonly seen: SignatureFilter;
  /** The lowest id of a new chamber. */
  readonly chamberIdMin: number;
}

export abstract class SqlEventLog implements EventLog {
  readonly turns = new ReadTurns();
  readonly logId: string;
  readonly damages: Damages;
  readonly #parts: EventLogParts;
  readonly #statements: ReturnType<typeof statementsFor>;

  constructor(parts: EventLogParts) {
    this.logId = parts.logId;
    this.damages = parts.damages;
    this.#parts = parts;
    this.#statements = statementsFor(parts.sql.dialect);
  }

  abstract append(batch: AppendBatch): Promise<AppendResult>;
  abstract find(signatureKeys: readonly string[]): Promise<AppendResult['found']>;
  /** Gives a place to the lines that have none; returns false if some can't have one now. */
  protected abstract placeLines(): Promise<boolean>;
  /** What is thrown where a line may be in the log and can't have a place now. */
  protected abstract unplaced(): Error;
  /** The rows of a query of lines in the order of a column, up to the one with which they have PAGE_BYTES. */
  protected abstract readLines<Row extends StoredLine>(
    order: 'event_id' | 'place',
    text: string,
    values: readonly SqlValue[],
  ): Promise<readonly Row[]>;
  /** Writes what can be made again. */
  protected abstract write(text: string, values: readonly SqlValue[]): Promise<unknown>;

  mayHold(signatureKey: string): boolean {
    return signatureKey.length === HIDDEN_KEY_CHARS || this.#parts.seen.mayHold(signatureKey);
  }

  #key(stream: StreamId): string | number {
    return this.#parts.sql.dialect.streamKey(stream);
  }

  async lastEventId(stream: StreamId): Promise<number> {
    const text = stream === ALL_CHAMBERS ? LAST_CHAMBER : LAST_EVENT;
    const [row] = await this.#parts.sql.query<HeadRow>(text, stream === ALL_CHAMBERS ? [] : [this.#key(stream)]);
    const head = row?.head ?? 0;
    return stream === ALL_CHAMBERS ? Math.max(head, this.#parts.chamberIdMin - 1) : head;
  }

  async readPage(stream: StreamId, after: number, limit: number): Promise<Page> {
    const rows = await this.readLines<StoredLine>('event_id', this.#statements.page, [this.#key(stream), after, limit]);
    for (const [index, { event_id: eventId }] of rows.entries()) {
      const expected = after + index + 1;
      if (eventId !== expected) throw this.damages.note(stream, expected, `event ${expected} is missing`);
    }
    return { ndjson: this.#join(rows), count: rows.length };
  }

  /** Places have no gaps, so a page passes so many at most. */
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
      const damage = damageIn(this.damages, row);
      if (damage !== undefined) throw damage;
      parts.push(row.line, LINE_BREAK);
    }
    return Buffer.concat(parts);
  }

  async lastPlace(): Promise<number> {
    await this.placeLines();
    const [row] = await this.#parts.sql.query<PlaceRow>(this.#statements.lastPlace, []);
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
    const asked = jsonRows(
      ASKED,
      refs.map(({ eventId: event }) => ({ event })),
    );
    const rows = await this.#parts.sql.query<NodesRow>(this.#statements.nodes, [this.#key(chamberId), asked]);
    const byEvent = new Map(rows.map((row) => [row.event_id, row]));
    return refs.map((ref) => {
      const stored = byEvent.get(ref.eventId);
      if (stored === undefined) throw this.damages.note(chamberId, ref.eventId, `event ${ref.eventId} is missing`);
      return this.damages.nodeIn(chamberId, ref, stored);
    });
  }

  async readSnapshot(stream: StreamId): Promise<Snapshot | undefined> {
    const [row] = await this.#parts.sql.query<SnapshotRow>(READ_SNAPSHOT, [String(stream)]);
    const isWhole = row?.version === STATE_VERSION && row.crc === crc32(row.state);
    return isWhole ? { eventId: row.event_id, leaf: row.leaf, state: row.state } : undefined;
  }

  async writeSnapshot(stream: StreamId, snapshot: Snapshot): Promise<void> {
    await this.write(WRITE_SNAPSHOT, snapshotValues(stream, snapshot));
  }

  async dropSnapshot(stream: StreamId): Promise<void> {
    await this.write(DROP_SNAPSHOT, [String(stream)]);
  }
}

const LINE_BREAK = Buffer.from('\n');
/** Places that one page over all chambers passes at most: those of accounts are skipped. */
const PLACES_PER_PAGE = 4_000;

const LAST_CHAMBER = 'SELECT max(chamber_id) AS head FROM chambers';
const LAST_EVENT = 'SELECT max(event_id) AS head FROM events WHERE stream = $1';

const READ_SNAPSHOT = 'SELECT * FROM snapshots WHERE stream = $1';
const DROP_SNAPSHOT = 'DELETE FROM snapshots WHERE stream = $1';
/** The latest one stays. */
export function upsertSnapshots(source: string): string {
  return `${upsert(SNAPSHOTS, source)} WHERE snapshots.event_id <= excluded.event_id`;
}

export const WRITE_SNAPSHOT = upsertSnapshots('VALUES ($1, $2, $3, $4, $5, $6)');

/** In the order of the columns. */
export function snapshotRow(stream: StreamId, { eventId, leaf, state }: Snapshot): Row {
  return { stream: String(stream), event_id: eventId, version: STATE_VERSION, leaf, state, crc: crc32(state) };
}

export function snapshotValues(stream: StreamId, snapshot: Snapshot): readonly SqlValue[] {
  return Object.values(snapshotRow(stream, snapshot));
}

export interface SnapshotRow {
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

const ASKED: Columns = { event: 'integer' };

function statementsFor({ lines, places, placedLines, listed }: Dialect) {
  return {
    page: `SELECT stream, event_id, line, line_crc FROM ${lines} WHERE stream = $1 AND event_id > $2 ORDER BY event_id LIMIT $3`,
    // DIDs sort after ':', and ids of chambers before it.
    all: `SELECT place, stream, event_id, line, line_crc FROM ${placedLines}
      WHERE place > $1 AND place <= $2 AND stream < ':' ORDER BY place LIMIT $3`,
    lastPlace: `SELECT coalesce(max(place), 0) AS place FROM ${places}`,
    placeOf: `SELECT place FROM ${places} WHERE stream = $1 AND event_id = $2`,
    nodes: `SELECT event_id, nodes, nodes_crc FROM ${lines} WHERE stream = $1
      AND event_id IN (SELECT event FROM ${listed('$2', ASKED)})`,
  };
}
