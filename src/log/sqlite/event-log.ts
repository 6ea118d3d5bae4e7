// The event log in one SQLite file: an append that resolved is on disk.
import { crc32 } from 'node:zlib';
import type Database from 'better-sqlite3';
import { HIDDEN_KEY_CHARS } from '../../crypto/http-signature.ts';
import type { NodeRef } from '../../crypto/merkle.ts';
import type { Damages, StoredNodes, StreamDamaged } from '../damage.ts';
import type {
  AppendBatch,
  AppendResult,
  EventLog,
  LogEntry,
  OrderedPage,
  Page,
  Registration,
  Snapshot,
} from '../log.ts';
import { PAGE_BYTES, type PageRange } from '../pages.ts';
import { ReadTurns } from '../read-turns.ts';
import type { StreamId } from '../stream-id.ts';
import type { Access } from './access.ts';
import type { ChamberPhases } from './chamber-phases.ts';
import { DerivedRows } from './derived-tables.ts';
import type { EventIndex, FlushProgress } from './event-index.ts';
import type { Memberships } from './memberships.ts';
import { Registrations } from './registrations.ts';
import { Snapshots } from './snapshots.ts';

const LINE_BREAK = Buffer.from('\n');
/** Positions that one page over all chambers passes at most: those of accounts are skipped. */
const POSITIONS_PER_PAGE = 4_000;
const NO_LINES: Page = { ndjson: Buffer.alloc(0), count: 0 };

interface Parts {
  readonly access: Access;
  readonly damages: Damages;
  readonly index: EventIndex;
  readonly memberships: Memberships;
  readonly phases: ChamberPhases;
}

export class SqliteEventLog implements EventLog {
  readonly turns = new ReadTurns();
  readonly logId: string;
  readonly damages: Damages;
  readonly #parts: Parts;
  readonly #statements: Statements;
  readonly #rows: DerivedRows;
  readonly #registrations: Registrations;
  readonly #snapshots: Snapshots;
  readonly #index: EventIndex;
  readonly #write: (entries: readonly LogEntry[], registrations: readonly Registration[]) => FlushProgress;
  readonly #lastPosition: Database.Statement<[], number>;
  #position: number;

  constructor(logId: string, parts: Parts) {
    const { db } = parts.access.file;
    this.logId = logId;
    this.damages = parts.damages;
    this.#parts = parts;
    this.#index = parts.index;
    this.#statements = prepare(db);
    this.#rows = new DerivedRows(db);
    this.#registrations = new Registrations(db);
    this.#snapshots = new Snapshots(db);
    this.#write = db.transaction(this.#writeEntries.bind(this)).immediate;
    this.#lastPosition = db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck();
    this.#position = this.#lastPosition.get() ?? 0;
  }

  async append({ entries, registrations = [], heads = NO_HEADS, signatures = [] }: AppendBatch): Promise<AppendResult> {
    const { access } = this.#parts;
    const found = new Map<string, string | StreamDamaged>();
    const moved = new Map<StreamId, number>();
    try {
      // The check precedes any statement: reading beyond the end of a -shm that was truncated would end the process.
      if (entries.length + registrations.length > 0) access.file.requireUnchanged?.();
      for (const key of signatures) this.#lookUp(key, found);
      const known = new Set<StreamId>();
      for (const { did, signature } of registrations) if (signature && this.#lookUp(signature, found)) known.add(did);
      for (const { stream, signature } of entries) {
        if (signature && this.#index.filter.mayHold(signature) && this.#lookUp(signature, found)) known.add(stream);
      }
      this.#index.findMoved({ entries, heads, known }, moved);
      const written = moved.size === 0 ? entries : entries.filter(({ stream }) => !moved.has(stream));
      const remembered =
        moved.size + found.size === 0
          ? registrations
          : registrations.filter(({ did, signature }) => !moved.has(did) && !found.has(signature ?? ''));
      if (written.length + remembered.length === 0) return { moved, found };
      const flushing = this.#write(written, remembered);
      // The positions are counted after the commit: a transaction that was rolled back uses up none.
      this.#index.committed(written, this.#position + 1, flushing);
      this.#position += written.length;
      access.writeFailure = undefined;
      return { moved, found };
    } catch (error) {
      throw access.writeFailed(error, () => this.#lastPosition.get() === this.#position);
    }
  }

  mayHold(signatureKey: string): boolean {
    return signatureKey.length === HIDDEN_KEY_CHARS || this.#index.filter.mayHold(signatureKey);
  }

  find(signatureKeys: readonly string[]): Promise<AppendResult['found']> {
    return this.#parts.access.read(() => {
      const found = new Map<string, string | StreamDamaged>();
      for (const key of signatureKeys) this.#lookUp(key, found);
      return found;
    });
  }

  #writeEntries(entries: readonly LogEntry[], registrations: readonly Registration[]): FlushProgress {
    let position = this.#position;
    for (const entry of entries) {
      const { stream, eventId, at, line, signature, nodes, listings, snapshot } = entry;
      const chamberId = typeof stream === 'number' ? stream : null;
      const account = typeof stream === 'string' ? stream : null;
      const signatureBytes = signature === null ? null : Buffer.from(signature, 'latin1');
      const checksums = [crc32(line), nodes && crc32(nodes)] as const;
      this.#statements.insert.run(++position, chamberId, account, eventId, line, signatureBytes, nodes, ...checksums);
      for (const listing of listings) {
        this.#rows.write(listing);
        if (listing.kind === 'chamber') this.#parts.phases.write(listing, at);
      }
      this.#parts.memberships.forget(entry);
      if (snapshot !== undefined) this.#snapshots.write(stream, snapshot);
    }
    for (const registration of registrations) this.#registrations.write(registration);
    return this.#index.writeChunk(entries.length);
  }

  /** Returns whether the key led to a line, which is added to `found`. */
  #lookUp(key: string, found: Map<string, string | StreamDamaged>): boolean {
    const position =
      key.length === HIDDEN_KEY_CHARS ? this.#positionOfRegistration(key) : this.#index.positionOfSignature(key);
    const stored = position === undefined ? undefined : this.#statements.stored.get(position);
    if (stored === undefined) return false;
    found.set(key, this.#damageIn(stored) ?? stored.line.toString());
    return true;
  }

  #positionOfRegistration(key: string): number | undefined {
    const found = this.#registrations.find(key);
    return found && this.#index.positionOf(found.did, found.event_id);
  }

  /** The newest lines by their positions in memory; before them a page of history, which SQLite joins into one buffer. */
  async readPage(stream: StreamId, after: number, limit: number): Promise<Page> {
    try {
      const isRecent = this.#index.recentPositions(stream, after, 1).length > 0;
      const indexed = isRecent ? NO_LINES : this.#readIndexed(stream, after, limit);
      const { ndjson, count } = indexed;
      const cursor = { stream, after: after + count };
      const positions = this.#index.recentPositions(stream, cursor.after, limit - count);
      const recent = this.#readLines(positions, cursor, PAGE_BYTES - ndjson.length);
      if (count + recent.count === 0 && after < this.#index.lastEventId(stream)) throw this.#lost(stream, after + 1);
      // Only a page of both is copied.
      if (count === 0 || recent.count === 0) return count === 0 ? recent : indexed;
      return { ndjson: Buffer.concat([ndjson, recent.ndjson]), count: count + recent.count };
    } catch (error) {
      throw this.#parts.access.failed(error);
    }
  }

  /** SQLite joins the lines: with a buffer for each, a page would take half as long again. */
  #readIndexed(stream: StreamId, after: number, limit: number): Page {
    const count = this.#countLines(stream, after, limit);
    if (count === 0) return NO_LINES;
    const [ndjson, checksums, lastEventId] = this.#statements.lines.get(stream, after, count) as JoinedLines;
    if (lastEventId === after + count && areAsWritten(ndjson, JSON.parse(checksums), count)) return { ndjson, count };
    // The lines that are checked now are served, not those of the first read.
    const positions = Array.from(
      { length: count },
      (_, index) => this.#index.positionOf(stream, after + index + 1) ?? 0,
    );
    return this.#readLines(positions, { stream, after }, PAGE_BYTES);
  }

  /** Up to the one that fills the page. */
  #countLines(stream: StreamId, after: number, limit: number): number {
    let count = 0;
    let bytes = 0;
    for (const length of this.#statements.lengths.iterate(stream, after, limit)) {
      count++;
      bytes += length + 1;
      if (bytes >= PAGE_BYTES) break;
    }
    return count;
  }

  /** Line by line, each checked, up to the one that reaches so many bytes. */
  #readLines(
    positions: readonly number[],
    { stream, after }: Pick<PageRange, 'stream' | 'after'>,
    bytesMax: number,
  ): Page {
    const parts: Buffer[] = [];
    let count = 0;
    let bytes = 0;
    for (const position of positions) {
      if (bytes >= bytesMax) break;
      const stored = this.#statements.stored.get(position);
      const eventId = after + ++count;
      if (stored?.stream !== stream || stored.event_id !== eventId) throw this.#lost(stream, eventId);
      const damage = this.#damageIn(stored);
      if (damage !== undefined) throw damage;
      parts.push(stored.line, LINE_BREAK);
      bytes += stored.line.length + 1;
    }
    return { ndjson: Buffer.concat(parts, bytes), count };
  }

  #damageIn({ stream, event_id: eventId, line, line_crc: checksum }: LineRow): StreamDamaged | undefined {
    if (checksum === crc32(line)) return undefined;
    return this.damages.note(stream, eventId, `event ${eventId} is not as it was written`);
  }

  #lost(stream: StreamId, eventId: number): StreamDamaged {
    return this.damages.note(stream, eventId, `event ${eventId} is not where the index has it`);
  }

  readSnapshot(stream: StreamId): Promise<Snapshot | undefined> {
    return this.#parts.access.read(() => this.#snapshots.read(stream));
  }

  writeSnapshot(stream: StreamId, snapshot: Snapshot): Promise<void> {
    return this.#parts.access.change(() => this.#snapshots.write(stream, snapshot));
  }

  dropSnapshot(stream: StreamId): Promise<void> {
    return this.#parts.access.change(() => this.#snapshots.drop(stream));
  }

  lastEventId(stream: StreamId): Promise<number> {
    return this.#parts.access.read(() => this.#index.lastEventId(stream));
  }

  /** The order of all chambers is that of the appends. */
  readAll(after: number, limit: number): Promise<OrderedPage> {
    return this.#parts.access.read(() => {
      const end = Math.min(after + POSITIONS_PER_PAGE, this.#position);
      const parts: Buffer[] = [];
      const rows: LineRow[] = [];
      let bytes = 0;
      for (const row of this.#statements.chamberLines.iterate(after, end, limit)) {
        rows.push(row);
        bytes += row.line.length + 1;
        if (bytes >= PAGE_BYTES) break;
      }
      for (const row of rows) {
        const damage = this.#damageIn(row);
        if (damage !== undefined) throw damage;
        parts.push(row.line, LINE_BREAK);
      }
      const isCut = rows.length === limit || bytes >= PAGE_BYTES;
      const last = isCut ? (rows.at(-1)?.position ?? after) : Math.max(after, end);
      return { ndjson: Buffer.concat(parts, bytes), count: rows.length, last };
    });
  }

  async lastPlace(): Promise<number> {
    return this.#position;
  }

  placeOf(stream: StreamId, eventId: number): Promise<number | undefined> {
    return this.#parts.access.read(() => this.#index.positionOf(stream, eventId));
  }

  readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]> {
    return this.#parts.access.read(() => refs.map((ref) => this.#readNode(chamberId, ref)));
  }

  #readNode(chamberId: number, ref: NodeRef): Uint8Array {
    const { eventId } = ref;
    const position = this.#index.positionOf(chamberId, eventId);
    const stored = position === undefined ? undefined : this.#statements.nodes.get(position);
    if (stored?.stream !== chamberId || stored.event_id !== eventId) throw this.#lost(chamberId, eventId);
    return this.damages.nodeIn(chamberId, ref, stored);
  }
}

const NO_HEADS: ReadonlyMap<StreamId, number> = new Map();

interface EventRow {
  readonly stream: StreamId;
  readonly event_id: number;
}

interface LineRow extends EventRow {
  readonly position: number;
  readonly line: Buffer;
  readonly line_crc: number | null;
}

type Range = [stream: StreamId, after: number, limit: number];

/** The lines, each ended by a line break; their checksums as JSON; the last one's eventId. */
type JoinedLines = readonly [ndjson: Buffer, checksums: string, lastEventId: number];

function areAsWritten(ndjson: Buffer, checksums: readonly (number | null)[], count: number): boolean {
  let start = 0;
  for (const checksum of checksums) {
    const end = ndjson.indexOf(LINE_BREAK, start);
    if (crc32(ndjson.subarray(start, end)) !== checksum) return false;
    start = end + 1;
  }
  return checksums.length === count && start === ndjson.length;
}

const STREAM = 'coalesce(chamber_id, account) AS stream';
/** An entry of the index that leads to another event finds nothing, so that its line is missing. */
const RANGE = `FROM stream_events AS entry CROSS JOIN events ON events.position = entry.position
  AND events.event_id = entry.event_id AND coalesce(chamber_id, account) = entry.stream
  WHERE entry.stream = ? AND entry.event_id > ? ORDER BY entry.event_id LIMIT ?`;

type Statements = ReturnType<typeof prepare>;

function prepare(db: Database.Database) {
  return {
    // Parameters are bound by position: binding by name takes a third longer, and this runs for every move.
    insert: db.prepare(
      `INSERT INTO events (position, chamber_id, account, event_id, line, signature, nodes, line_crc, nodes_crc)
       VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?, ?, ?, ?)`,
    ),
    stored: db.prepare<[number], LineRow>(
      `SELECT position, ${STREAM}, event_id, line_crc, CAST(line AS BLOB) AS line FROM events WHERE position = ?`,
    ),
    chamberLines: db.prepare<[number, number, number], LineRow>(
      `SELECT position, ${STREAM}, event_id, line_crc, CAST(line AS BLOB) AS line FROM events
       WHERE position > ? AND position <= ? AND chamber_id IS NOT NULL ORDER BY position LIMIT ?`,
    ),
    nodes: db.prepare<[number], EventRow & StoredNodes>(
      `SELECT ${STREAM}, event_id, nodes, nodes_crc FROM events WHERE position = ?`,
    ),
    lengths: db.prepare<Range, number>(`SELECT octet_length(line) ${RANGE}`).pluck(),
    lines: db
      .prepare<Range, JoinedLines>(
        `SELECT CAST(group_concat(line || char(10), '') AS BLOB), json_group_array(line_crc), max(event_id)
         FROM (SELECT line, line_crc, entry.event_id ${RANGE})`,
      )
      .raw(),
  };
}
