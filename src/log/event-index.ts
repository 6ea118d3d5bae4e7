// Where in the log the events of a stream and the signatures are: in tables, and in memory for what is newer. An event at a
// time, the tables would cost a commit more than its lines do: a page for each chamber. So thousands of events are sorted and
// then written in small shares with the commits that follow, each share to a few neighbouring pages.
import type { Database, Statement } from 'better-sqlite3';
import type { LogEntry, StreamId } from './log.ts';
import { type Place, RecentEvents } from './recent-events.ts';
import { SignatureFilter } from './signature-filter.ts';

/** Events gathered in memory before they are sorted and written. */
const GATHERED_MAX = 4_096;
/** Written with each event that is appended; it adds two at most, so that gathering never gets ahead. */
const PLACES_PER_EVENT = 3;

/** Name in `meta` of the position up to which the tables hold every event. They may hold some that follow. */
export const INDEXED_THROUGH = 'indexed_through';

const THROUGH = `(SELECT CAST(value AS INTEGER) FROM meta WHERE name = '${INDEXED_THROUGH}')`;

/** Which bytes of a signatureKey it is found by: the low half of its second, and four of the signature. A page holds many. */
const PREFIX = { from: 4, to: 12 } as const;

/** The SQL for the prefix of a column. */
export function prefixOf(signature: string): string {
  return `substr(${signature}, ${PREFIX.from + 1}, ${PREFIX.to - PREFIX.from})`;
}

/** A signatureKey as its column has it. */
export function columnBytes(signature: string): Buffer {
  return Buffer.from(signature, 'latin1');
}

function prefixBytes(signature: string): Buffer {
  return columnBytes(signature.slice(PREFIX.from, PREFIX.to));
}

/** Brings the tables up to the end of the log; it wants a transaction around it. */
export function indexEverything(db: Database): void {
  db.exec(`
    INSERT OR IGNORE INTO stream_events SELECT coalesce(chamber_id, account), event_id, position FROM events
      WHERE position > ${THROUGH} ORDER BY 1, 2;
    INSERT OR IGNORE INTO signatures SELECT ${prefixOf('signature')}, position FROM events
      WHERE position > ${THROUGH} AND signature IS NOT NULL ORDER BY 1, 2;
    UPDATE meta SET value = (SELECT coalesce(max(position), 0) FROM events) WHERE name = '${INDEXED_THROUGH}';
  `);
}

interface UnindexedRow {
  readonly position: number;
  readonly stream: StreamId;
  readonly event_id: number;
  readonly signature: Buffer | null;
}

/** Events that are being written to the tables. */
interface Sorted {
  readonly events: RecentEvents;
  readonly places: readonly Place[];
  /** How many of the places are written. */
  readonly written: number;
}

/** What is left to be written; undefined where nothing is. */
export type IndexProgress = Sorted | undefined;

export class EventIndex {
  readonly #statements: Statements;
  readonly #filter: SignatureFilter;
  #gathered = new RecentEvents();
  #sorted: IndexProgress;

  constructor(db: Database) {
    this.#statements = prepare(db);
    this.#filter = new SignatureFilter((this.#statements.lastSecond.get()?.readUInt32BE() ?? -1) + 1);
    const through = this.#statements.through.get() ?? Number.NaN;
    const last = this.#statements.lastPosition.get() ?? 0;
    if (!(through >= 0 && through <= last)) throw new Error('the index is damaged: chambers rebuild makes it anew');
    for (const { position, stream, event_id: eventId, signature: bytes } of this.#statements.unindexed.all(through)) {
      const signature = bytes === null ? null : bytes.toString('latin1');
      this.#requireNextStored(stream, eventId, through);
      this.#requireOnce(signature, position);
      this.#gather({ stream, eventId, signature }, position);
    }
  }

  /** What another program appended is not served. */
  #requireNextStored(stream: StreamId, eventId: number, through: number): void {
    const isIndexed = (id: number) => (this.#statements.position.get(stream, id) ?? through + 1) <= through;
    const last = this.#gathered.lastEventId(stream);
    const isNext =
      last === undefined ? !isIndexed(eventId) && (eventId === 1 || isIndexed(eventId - 1)) : eventId === last + 1;
    if (isNext) return;
    throw new Error(
      `the log is append-only: event ${eventId} of ${stream} does not follow on the one before; chambers fsck says more`,
    );
  }

  #requireOnce(signature: string | null, position: number): void {
    const found = signature === null ? undefined : this.positionOfSignature(signature);
    if (found === undefined || found === position) return;
    throw new Error(`the log is append-only: the signature at position ${position} is at ${found} already`);
  }

  #gather(event: Pick<LogEntry, 'stream' | 'eventId' | 'signature'>, position: number): void {
    this.#gathered.add(event, position);
    if (event.signature !== null) this.#filter.add(event.signature);
  }

  /** Throws when an entry is not its stream's next event, or repeats a signature of late: older ones the caller has looked up. */
  requireNew(entries: readonly LogEntry[]): void {
    const lastIds = new Map<StreamId, number>();
    const signatures = new Set<string>();
    for (const { stream, eventId, signature } of entries) {
      const last = lastIds.get(stream) ?? this.lastEventId(stream);
      if (eventId !== last + 1) {
        throw new Error(`the log is append-only: after event ${last} of ${stream} comes ${last + 1}, not ${eventId}`);
      }
      lastIds.set(stream, eventId);
      if (signature === null) continue;
      if (signatures.has(signature) || this.#recentSignature(signature) !== undefined) {
        throw new Error(`the log is append-only: the signature of event ${eventId} of ${stream} is in it already`);
      }
      signatures.add(signature);
    }
  }

  /** Within the transaction that wrote so many events: writes the next share of places, and gives what is left to be. */
  writeShare(events: number): IndexProgress {
    if (this.#sorted === undefined) return undefined;
    const { places, written } = this.#sorted;
    const share = places.slice(written, written + events * PLACES_PER_EVENT);
    for (const place of share) {
      if ('stream' in place) this.#statements.addEvent.run(place.stream, place.eventId, place.position);
      else this.#statements.addSignature.run(prefixBytes(place.signature), place.position);
    }
    const sorted = { ...this.#sorted, written: written + share.length };
    if (sorted.written < places.length) return sorted;
    this.#statements.setThrough.run(String(sorted.events.lastPosition));
    return undefined;
  }

  /** After the commit: the new events, with the position of the first, and what writeShare gave. */
  committed(entries: readonly LogEntry[], position: number, sorted: IndexProgress): void {
    for (const [index, entry] of entries.entries()) this.#gather(entry, position + index);
    this.#sorted = sorted;
    if (sorted !== undefined || this.#gathered.size < GATHERED_MAX) return;
    this.#sorted = { events: this.#gathered, places: this.#gathered.places(), written: 0 };
    this.#gathered = new RecentEvents();
  }

  lastEventId(stream: StreamId): number {
    return (
      this.#gathered.lastEventId(stream) ??
      this.#sorted?.events.lastEventId(stream) ??
      this.#statements.lastEventId.get(stream) ??
      0
    );
  }

  /** 0 where there is none. */
  lastChamberId(): number {
    const { lastChamberId = 0 } = this.#sorted?.events ?? {};
    return Math.max(this.#statements.lastChamberId.get() ?? 0, lastChamberId, this.#gathered.lastChamberId);
  }

  positionOf(stream: StreamId, eventId: number): number | undefined {
    const [position] = this.recentPositions(stream, eventId - 1, 1);
    return position ?? this.#statements.position.get(stream, eventId);
  }

  positionOfSignature(signature: string): number | undefined {
    if (!this.#filter.mayHold(signature)) return undefined;
    return this.#recentSignature(signature) ?? this.#statements.signature.get({ signature: columnBytes(signature) });
  }

  /** Of the events `after` + 1 and on, at most `limit`; empty where the first of these is not in memory. */
  recentPositions(stream: StreamId, after: number, limit: number): readonly number[] {
    const sorted = this.#sorted?.events.positions(stream, after, limit) ?? [];
    const gathered = this.#gathered.positions(stream, after + sorted.length, limit - sorted.length);
    return sorted.length === 0 ? gathered : [...sorted, ...gathered];
  }

  #recentSignature(signature: string): number | undefined {
    return this.#gathered.positionOfSignature(signature) ?? this.#sorted?.events.positionOfSignature(signature);
  }
}

interface Statements {
  readonly through: Statement<[], number>;
  readonly setThrough: Statement<[string]>;
  readonly lastPosition: Statement<[], number>;
  readonly unindexed: Statement<[number], UnindexedRow>;
  readonly addEvent: Statement<[StreamId, number, number]>;
  readonly addSignature: Statement<[Uint8Array, number]>;
  readonly position: Statement<[StreamId, number], number>;
  readonly lastEventId: Statement<[StreamId], number>;
  readonly lastChamberId: Statement<[], number>;
  /** The low half of a signature's second, 32 bits big-endian, none where the table is empty. */
  readonly lastSecond: Statement<[], Buffer>;
  readonly signature: Statement<[{ signature: Uint8Array }], number>;
}

function prepare(db: Database): Statements {
  return {
    through: db.prepare<[], number>(`SELECT ${THROUGH}`).pluck(),
    setThrough: db.prepare(`UPDATE meta SET value = ? WHERE name = '${INDEXED_THROUGH}'`),
    lastPosition: db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck(),
    unindexed: db.prepare(
      `SELECT position, coalesce(chamber_id, account) AS stream, event_id, signature FROM events
       WHERE position > ? ORDER BY position`,
    ),
    // What was written before the process died, and is not counted, is written again.
    addEvent: db.prepare('INSERT OR IGNORE INTO stream_events VALUES (?, ?, ?)'),
    addSignature: db.prepare('INSERT OR IGNORE INTO signatures VALUES (?, ?)'),
    position: db
      .prepare<[StreamId, number], number>('SELECT position FROM stream_events WHERE stream = ? AND event_id = ?')
      .pluck(),
    lastEventId: db.prepare<[StreamId], number>('SELECT max(event_id) FROM stream_events WHERE stream = ?').pluck(),
    // Numbers come before texts.
    lastChamberId: db.prepare<[], number>("SELECT max(stream) FROM stream_events WHERE stream < ''").pluck(),
    lastSecond: db.prepare<[], Buffer>('SELECT prefix FROM signatures ORDER BY prefix DESC LIMIT 1').pluck(),
    signature: db
      .prepare<[{ signature: Uint8Array }], number>(
        `SELECT position FROM signatures CROSS JOIN events USING (position)
         WHERE prefix = ${prefixOf('@signature')} AND signature = @signature`,
      )
      .pluck(),
  };
}
