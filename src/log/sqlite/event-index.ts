// The index: where in the log each event of a stream and each signature is. Written with each event, it would cost a commit more
// pages than its lines do. So the newest events are indexed in memory (the memtable); a full memtable is sorted and flushed to
// the tables stream_events and signatures in chunks, one with each later commit, each chunk to a few neighbouring pages.
//
// Measured against plain unique indexes on `events`, by (stream, event_id) and by signature, in November 2026: with them a process
// writes 15.7 KB for each event instead of 6.5 in batches of 16 moves, and 11.1 KB instead of 3.6 in batches of 64 (moves in 2,000 of
// 22,000 chambers, a log of 60,000 events, checkpoints included). What that costs in moves a second depends on the disk.
//
// Why no look-up misses an event or a signature:
//  1. Below the watermark (in `meta`) every event has its entries in the tables. They may also hold entries above it.
//  2. Above the watermark every event is in the memtable or in the one that is being flushed. The start reads these events
//     from the log; a commit adds its own once it is durable; a flushing memtable is dropped only after the commit whose
//     transaction wrote its last chunk and moved the watermark to its last event.
//  3. Look-ups read memory first, then the tables. By 1 and 2 one of them has the entry.
//  4. A half-written flush is harmless. A chunk belongs to the transaction of a commit: if that is rolled back, the chunk is
//     written again with the next one. After a crash the watermark still precedes the flushed events: they are in memory
//     again (2), and flushing them again inserts the same entries, which IGNORE leaves alone.
//  5. Memory is bounded: a commit flushes more entries than its events add, so a flush ends before the next memtable is full.
//
// Why the filter has no false negative. It rejects a signature only if its second is `completeFrom` or later and it was never
// added; so every signature in the log from `completeFrom` on must be in it:
//  6. At the start `completeFrom` follows the latest second in the table of signatures. A later one is not in the table, so by
//     1 it is above the watermark, and the start adds it. Entries above the watermark only raise `completeFrom`.
//  7. Each commit adds its signatures. When the filter drops its older generation, it raises `completeFrom` past the latest
//     second dropped. A signature from the future raises it further, which costs look-ups but no truth.
//  8. The table keeps the low 32 bits of the second. The filter never rejects a second beyond them.
// The prefix in the table of signatures is not unique: a look-up compares the whole signature with the column in `events`.
import type { Database } from 'better-sqlite3';
import { ALL_CHAMBERS, type LogEntry } from '../log.ts';
import { SignatureFilter } from '../signature-filter.ts';
import type { StreamId } from '../stream-id.ts';

const MEMTABLE_EVENTS_MAX = 4_096;
/** Flushed with each event that is appended, which adds two entries at most. */
const ENTRIES_PER_EVENT = 3;

/** Name in `meta` of the position up to which the tables are complete. */
export const WATERMARK = 'indexed_through';
const WATERMARK_SQL = `(SELECT CAST(value AS INTEGER) FROM meta WHERE name = '${WATERMARK}')`;

/** The bytes of a signatureKey that index it: the low half of its second, and four of the signature. */
const PREFIX = { from: 4, to: 12 } as const;

/** The SQL for the prefix of a column. */
export function prefixOf(signature: string): string {
  return `substr(${signature}, ${PREFIX.from + 1}, ${PREFIX.to - PREFIX.from})`;
}

/** Brings the tables up to the end of the log; wants a transaction around it. */
export function indexEverything(db: Database): void {
  db.exec(`
    INSERT OR IGNORE INTO stream_events SELECT coalesce(chamber_id, account), event_id, position FROM events
      WHERE position > ${WATERMARK_SQL} ORDER BY 1, 2;
    INSERT OR IGNORE INTO signatures SELECT ${prefixOf('signature')}, position FROM events
      WHERE position > ${WATERMARK_SQL} AND signature IS NOT NULL ORDER BY 1, 2;
    UPDATE meta SET value = (SELECT coalesce(max(position), 0) FROM events) WHERE name = '${WATERMARK}';
  `);
}

type IndexedEvent = Pick<LogEntry, 'stream' | 'eventId' | 'signature'>;

interface Expectations {
  readonly entries: readonly IndexedEvent[];
  readonly heads: ReadonlyMap<StreamId, number>;
  /** Streams of entries and registrations whose signatures led to lines before. */
  readonly known: ReadonlySet<StreamId>;
}

/** Consecutive events of a stream. */
interface Run {
  readonly firstEventId: number;
  readonly positions: number[];
}

interface Memtable {
  readonly streams: Map<StreamId, Run>;
  /** Positions by signatureKey. */
  readonly signatures: Map<string, number>;
  events: number;
  lastPosition: number;
}

type IndexEntry =
  | { readonly stream: StreamId; readonly eventId: number; readonly position: number }
  | { readonly signature: string; readonly position: number };

/** A memtable on its way to the tables. */
interface Flushing extends Memtable {
  readonly entries: readonly IndexEntry[];
  /** How many of the entries are in the tables. */
  readonly written: number;
}

/** What is left to flush. */
export type FlushProgress = Flushing | undefined;

export class EventIndex {
  readonly #statements: Statements;
  /** Rejects only signatures that are not in the log. */
  readonly filter: SignatureFilter;
  #memtable = emptyMemtable();
  #flushing: FlushProgress;
  /** The id before that of the next chamber; 0 in an empty log. */
  lastChamberId: number;

  /** Reads the events above the watermark; throws if one of them is not its stream's next, which another program appended. */
  constructor(db: Database, chamberIdMin = 1) {
    this.#statements = prepare(db);
    const newest = this.#statements.lastSecond.get();
    const isCut = newest !== undefined && newest.length < Uint32Array.BYTES_PER_ELEMENT;
    this.filter = new SignatureFilter(isCut ? 0 : (newest?.readUInt32BE() ?? -1) + 1);
    this.lastChamberId = Math.max(this.#statements.lastChamberId.get() ?? 0, chamberIdMin - 1);
    const watermark = this.#statements.watermark.get() ?? Number.NaN;
    const last = this.#statements.lastPosition.get() ?? 0;
    if (isCut || !(watermark >= 0 && watermark <= last)) throw new Error('the index is damaged: run chambers rebuild');
    for (const { position, stream, event_id: eventId, signature: bytes } of this.#statements.unindexed.all(watermark)) {
      const event = { stream, eventId, signature: bytes?.toString('latin1') ?? null };
      this.#requireNextStored(event, position, watermark);
      this.committed([event], position, this.#flushing);
    }
  }

  #requireNextStored({ stream, eventId, signature }: IndexedEvent, position: number, watermark: number): void {
    const isBelow = (id: number) => (this.#statements.position.get(stream, id) ?? watermark + 1) <= watermark;
    const isInMemory = this.#memtable.streams.has(stream) || this.#flushing?.streams.has(stream);
    const isNext = isInMemory
      ? eventId === this.lastEventId(stream) + 1
      : !isBelow(eventId) && (eventId === 1 || isBelow(eventId - 1));
    const first = signature === null ? undefined : this.positionOfSignature(signature);
    const problem = !isNext
      ? `event ${eventId} of ${stream} does not follow the one before it`
      : first !== undefined && first !== position && `it repeats the signature of position ${first}`;
    if (!problem) return;
    throw new Error(`position ${position} breaks the append-only log: ${problem}; chambers fsck reports the damage`);
  }

  /**
   * Adds to `moved`, with their heads: the streams in which a signature is `known`, those whose entries do not follow their last event,
   * and those with another head than in `heads`. Throws if two entries have one signature.
   */
  findMoved({ entries, heads, known }: Expectations, moved: Map<StreamId, number>): void {
    const lastIds = new Map<StreamId, number>();
    const signatures = new Set<string>();
    let { lastChamberId } = this;
    for (const { stream, eventId, signature } of entries) {
      const isCreation = typeof stream === 'number' && eventId === 1;
      const follows =
        eventId === (lastIds.get(stream) ?? this.lastEventId(stream)) + 1 &&
        !(isCreation && stream !== lastChamberId + 1);
      lastIds.set(stream, eventId);
      if (!follows || known.has(stream)) {
        moved.set(stream, this.lastEventId(stream));
        if (isCreation) moved.set(ALL_CHAMBERS, this.lastChamberId);
      } else if (isCreation) lastChamberId = stream;
      if (signature === null) continue;
      if (signatures.has(signature)) throw new Error(`the batch has a signature twice: event ${eventId} of ${stream}`);
      signatures.add(signature);
    }
    for (const [stream, expected] of heads) {
      const head = this.lastEventId(stream);
      if (head !== expected) moved.set(stream, head);
    }
  }

  /** Writes the next chunk within the transaction of a commit of so many events, and returns what is left, for `committed`. */
  writeChunk(events: number): FlushProgress {
    if (this.#flushing === undefined) return undefined;
    const { entries, written, lastPosition } = this.#flushing;
    const end = Math.min(written + events * ENTRIES_PER_EVENT, entries.length);
    for (const entry of entries.slice(written, end)) {
      if ('stream' in entry) this.#statements.addEvent.run(entry.stream, entry.eventId, entry.position);
      else this.#statements.addSignature.run(prefixBytes(entry.signature), entry.position);
    }
    if (end < entries.length) return { ...this.#flushing, written: end };
    this.#statements.setWatermark.run(String(lastPosition));
    return undefined;
  }

  /** Takes the events of a commit, of which the first is at `position`, and what writeChunk returned. */
  committed(events: readonly IndexedEvent[], position: number, flushing: FlushProgress): void {
    this.#flushing = flushing;
    const memtable = this.#memtable;
    let next = position;
    for (const { stream, eventId, signature } of events) {
      const run = memtable.streams.get(stream);
      if (run === undefined) memtable.streams.set(stream, { firstEventId: eventId, positions: [next] });
      else run.positions.push(next);
      if (typeof stream === 'number' && stream > this.lastChamberId) this.lastChamberId = stream;
      if (signature !== null) {
        memtable.signatures.set(signature, next);
        this.filter.add(signature);
      }
      memtable.lastPosition = next++;
    }
    memtable.events += events.length;
    if (flushing !== undefined || memtable.events < MEMTABLE_EVENTS_MAX) return;
    this.#flushing = { ...memtable, entries: sortedEntries(memtable), written: 0 };
    this.#memtable = emptyMemtable();
  }

  /** 0 for a stream without events. `indexed`: what the tables hold, where the caller has read them. */
  lastEventId(stream: StreamId, indexed?: number | null): number {
    if (stream === ALL_CHAMBERS) return this.lastChamberId;
    const run = this.#memtable.streams.get(stream) ?? this.#flushing?.streams.get(stream);
    if (run !== undefined) return run.firstEventId + run.positions.length - 1;
    return indexed ?? this.#statements.lastEventId.get(stream) ?? 0;
  }

  positionOf(stream: StreamId, eventId: number): number | undefined {
    const [position] = this.recentPositions(stream, eventId - 1, 1);
    return position ?? this.#statements.position.get(stream, eventId);
  }

  positionOfSignature(signature: string): number | undefined {
    if (!this.filter.mayHold(signature)) return undefined;
    return (
      this.#memtable.signatures.get(signature) ??
      this.#flushing?.signatures.get(signature) ??
      this.#statements.signature.get({ signature: Buffer.from(signature, 'latin1') })
    );
  }

  /** The positions from event `after` + 1 on, at most `limit`; empty if that event is not in memory. */
  recentPositions(stream: StreamId, after: number, limit: number): readonly number[] {
    let found: readonly number[] = [];
    for (const run of [this.#flushing?.streams.get(stream), this.#memtable.streams.get(stream)]) {
      const from = run === undefined ? -1 : after + found.length + 1 - run.firstEventId;
      if (run === undefined || from < 0) continue;
      const positions = run.positions.slice(from, from + limit - found.length);
      found = found.length === 0 ? positions : [...found, ...positions];
    }
    return found;
  }
}

function emptyMemtable(): Memtable {
  return { streams: new Map(), signatures: new Map(), events: 0, lastPosition: 0 };
}

/** The entries in the order of the tables, so that neighbours are written to one page. */
function sortedEntries(memtable: Memtable): readonly IndexEntry[] {
  const streams = [...memtable.streams].sort(([one], [other]) => (one < other ? -1 : 1));
  const signatures = [...memtable.signatures].sort(([one], [other]) => (one < other ? -1 : 1));
  return [
    ...streams.flatMap(([stream, { firstEventId, positions }]) =>
      positions.map((position, index) => ({ stream, eventId: firstEventId + index, position })),
    ),
    ...signatures.map(([signature, position]) => ({ signature, position })),
  ];
}

function prefixBytes(signature: string): Buffer {
  return Buffer.from(signature.slice(PREFIX.from, PREFIX.to), 'latin1');
}

interface UnindexedRow {
  readonly position: number;
  readonly stream: StreamId;
  readonly event_id: number;
  readonly signature: Buffer | null;
}

type Statements = ReturnType<typeof prepare>;

function prepare(db: Database) {
  return {
    watermark: db.prepare<[], number>(`SELECT ${WATERMARK_SQL}`).pluck(),
    setWatermark: db.prepare<[string]>(`UPDATE meta SET value = ? WHERE name = '${WATERMARK}'`),
    lastPosition: db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck(),
    unindexed: db.prepare<[number], UnindexedRow>(
      `SELECT position, coalesce(chamber_id, account) AS stream, event_id, signature FROM events
       WHERE position > ? ORDER BY position`,
    ),
    addEvent: db.prepare<[StreamId, number, number]>('INSERT OR IGNORE INTO stream_events VALUES (?, ?, ?)'),
    addSignature: db.prepare<[Uint8Array, number]>('INSERT OR IGNORE INTO signatures VALUES (?, ?)'),
    position: db
      .prepare<[StreamId, number], number>('SELECT position FROM stream_events WHERE stream = ? AND event_id = ?')
      .pluck(),
    lastEventId: db.prepare<[StreamId], number>('SELECT max(event_id) FROM stream_events WHERE stream = ?').pluck(),
    // Numbers sort before texts.
    lastChamberId: db.prepare<[], number>("SELECT max(stream) FROM stream_events WHERE stream < ''").pluck(),
    /** Its first four bytes are the low half of the second. */
    lastSecond: db
      .prepare<[], Buffer>("SELECT prefix FROM signatures WHERE prefix >= x'' ORDER BY prefix DESC LIMIT 1")
      .pluck(),
    signature: db
      .prepare<[{ signature: Uint8Array }], number>(
        `SELECT position FROM signatures CROSS JOIN events USING (position)
         WHERE prefix = ${prefixOf('@signature')} AND signature = @signature`,
      )
      .pluck(),
  };
}
