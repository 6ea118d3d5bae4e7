// Where in the log the events of a stream and the signatures are: in tables that are filled for many events at once, and in
// memory for what is newer. Filled one event at a time they would cost a commit more than its lines: a page for each chamber.
import type { Database, Statement } from 'better-sqlite3';
import type { LogEntry, StreamId } from './log.ts';

/** Events kept in memory until they are indexed together. */
const UNINDEXED_MAX = 1_024;

/** Name in `meta` of the position up to which the tables hold every event. */
export const INDEXED_THROUGH = 'indexed_through';

const UNINDEXED = `position > (SELECT CAST(value AS INTEGER) FROM meta WHERE name = '${INDEXED_THROUGH}')`;

/** Which bytes of a signatureKey it is found by: the low half of its second and four of the signature. Few pages hold many. */
const HEAD = [4, 12] as const;

/** The SQL for the head of a column. */
export function headOf(signature: string): string {
  return `substr(${signature}, ${HEAD[0] + 1}, ${HEAD[1] - HEAD[0]})`;
}

interface UnindexedRow {
  readonly position: number;
  readonly stream: StreamId;
  readonly event_id: number;
  readonly signature: Buffer | null;
}

/** Returns what brings the tables up to the end of the log; it wants a transaction around it. */
export function prepareFill(db: Database): () => void {
  const statements = [
    `INSERT OR FAIL INTO stream_events SELECT coalesce(chamber_id, account), event_id, position FROM events
     WHERE ${UNINDEXED} ORDER BY 1, 2`,
    `INSERT OR FAIL INTO signatures SELECT ${headOf('signature')}, position FROM events
     WHERE ${UNINDEXED} AND signature IS NOT NULL ORDER BY 1, 2`,
    `UPDATE meta SET value = (SELECT coalesce(max(position), 0) FROM events) WHERE name = '${INDEXED_THROUGH}'`,
  ].map((sql) => db.prepare(sql));
  return () => {
    for (const statement of statements) statement.run();
  };
}

export class EventIndex {
  readonly #fill: () => void;
  readonly #position: Statement<[StreamId, number], number>;
  readonly #last: Statement<[StreamId], number>;
  readonly #lastChamber: Statement<[], number>;
  readonly #head: Statement<[Uint8Array], number>;
  readonly #signature: Statement<[{ signature: Uint8Array }], number>;
  readonly #unindexed = new UnindexedEvents();

  constructor(db: Database) {
    this.#fill = prepareFill(db);
    this.#position = db
      .prepare<[StreamId, number], number>('SELECT position FROM stream_events WHERE stream = ? AND event_id = ?')
      .pluck();
    this.#last = db.prepare<[StreamId], number>('SELECT max(event_id) FROM stream_events WHERE stream = ?').pluck();
    // Numbers come before texts.
    this.#lastChamber = db.prepare<[], number>("SELECT max(stream) FROM stream_events WHERE stream < ''").pluck();
    this.#head = db.prepare<[Uint8Array], number>('SELECT position FROM signatures WHERE head = ?').pluck();
    this.#signature = db
      .prepare<[{ signature: Uint8Array }], number>(
        `SELECT position FROM signatures CROSS JOIN events USING (position)
         WHERE head = ${headOf('@signature')} AND signature = @signature`,
      )
      .pluck();
    const rows = db.prepare<[], UnindexedRow>(
      `SELECT position, coalesce(chamber_id, account) AS stream, event_id, signature FROM events WHERE ${UNINDEXED}`,
    );
    for (const { position, stream, event_id: eventId, signature } of rows.iterate()) {
      requireNext(stream, eventId, this.lastEventId(stream));
      this.#unindexed.add({ stream, eventId, signature }, position);
    }
  }

  /** Throws when an entry is not its stream's next event, or when its signature was appended lately: a caller has looked it up. */
  requireNext(entries: readonly LogEntry[]): void {
    const heads = new Map<StreamId, number>();
    for (const { stream, eventId, signature } of entries) {
      requireNext(stream, eventId, heads.get(stream) ?? this.lastEventId(stream));
      heads.set(stream, eventId);
      if (signature !== null && this.#unindexed.positionOfSignature(signature) !== undefined) {
        throw new Error(`the log is append-only: the signature of event ${eventId} of ${stream} is in it already`);
      }
    }
  }

  /** Within the transaction that wrote these entries: indexes everything when there is enough of it, and says so. */
  fillWhenDue(written: number): boolean {
    const isDue = this.#unindexed.size + written >= UNINDEXED_MAX;
    if (isDue) this.#fill();
    return isDue;
  }

  /** After the commit of a transaction that did not fill the tables. */
  add(entries: readonly LogEntry[], before: number): void {
    for (const [index, entry] of entries.entries()) this.#unindexed.add(entry, before + 1 + index);
  }

  /** After the commit of a transaction that filled the tables. */
  forget(): void {
    this.#unindexed.clear();
  }

  lastEventId(stream: StreamId): number {
    return this.#unindexed.lastEventId(stream) ?? this.#last.get(stream) ?? 0;
  }

  /** 0 where there is none. */
  lastChamberId(): number {
    return Math.max(this.#lastChamber.get() ?? 0, this.#unindexed.lastChamberId);
  }

  positionOf(stream: StreamId, eventId: number): number | undefined {
    const [position] = this.#unindexed.positions(stream, eventId - 1, 1);
    return position ?? this.#position.get(stream, eventId);
  }

  positionOfSignature(signature: Uint8Array): number | undefined {
    const position = this.#unindexed.positionOfSignature(signature);
    // Nearly all are new: those are found to be so by their head alone.
    if (position !== undefined || this.#head.get(signature.subarray(...HEAD)) === undefined) return position;
    return this.#signature.get({ signature });
  }

  /** Positions of the events `after` + 1 and on, at most `limit`; empty where the first of these is in the tables. */
  unindexedPositions(stream: StreamId, after: number, limit: number): readonly number[] {
    return this.#unindexed.positions(stream, after, limit);
  }
}

function requireNext(stream: StreamId, eventId: number, last: number): void {
  if (eventId === last + 1) return;
  throw new Error(`the log is append-only: after event ${last} of ${stream} comes ${last + 1}, not ${eventId}`);
}

interface Recent {
  readonly firstEventId: number;
  readonly positions: number[];
}

/** The events that are in the log and not yet in the tables. */
class UnindexedEvents {
  readonly #streams = new Map<StreamId, Recent>();
  readonly #signatures = new Map<string, number>();
  size = 0;
  lastChamberId = 0;

  add({ stream, eventId, signature }: Pick<LogEntry, 'stream' | 'eventId' | 'signature'>, position: number): void {
    const recent = this.#streams.get(stream);
    if (recent === undefined) this.#streams.set(stream, { firstEventId: eventId, positions: [position] });
    else recent.positions.push(position);
    if (signature !== null) this.#signatures.set(textOf(signature), position);
    if (typeof stream === 'number') this.lastChamberId = Math.max(this.lastChamberId, stream);
    this.size++;
  }

  clear(): void {
    this.#streams.clear();
    this.#signatures.clear();
    this.size = 0;
  }

  lastEventId(stream: StreamId): number | undefined {
    const recent = this.#streams.get(stream);
    return recent && recent.firstEventId + recent.positions.length - 1;
  }

  positions(stream: StreamId, after: number, limit: number): readonly number[] {
    const recent = this.#streams.get(stream);
    const from = recent === undefined ? -1 : after + 1 - recent.firstEventId;
    return recent === undefined || from < 0 ? [] : recent.positions.slice(from, from + limit);
  }

  positionOfSignature(signature: Uint8Array): number | undefined {
    return this.#signatures.get(textOf(signature));
  }
}

function textOf(signature: Uint8Array): string {
  return Buffer.from(signature.buffer, signature.byteOffset, signature.length).toString('latin1');
}
