// The log in one SQLite file: WAL, synchronous=FULL, one writer. An append that resolved is on disk. Every failure of the
// store is one of two: nothing was written and a retry may succeed, or memory and disk may differ and the process must stop.
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { LRUCache } from 'lru-cache';
import type { ChamberListing } from '../../../projections/listings.ts';
import type { Membership } from '../../../projections/todo.ts';
import type { AgentRecord, IdeaView } from '../../../projections/views.ts';
import { HIDDEN_KEY_CHARS } from '../../crypto/http-signature.ts';
import { HASH_BYTES, type NodeRef, nodeHash } from '../../crypto/merkle.ts';
import { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import {
  type ChamberListQuery,
  type ForumLog,
  type GraduatedQuery,
  type Lease,
  LogCorruption,
  type LogEntry,
  type LookUp,
  type OrderedPage,
  type Page,
  type Registration,
  type Seat,
  type Snapshot,
  StreamDamaged,
  type StreamId,
} from '../log.ts';
import { MOVED_TO, requireNotMoved } from '../moved.ts';
import { PAGE_BYTES, type PageRange } from '../pages.ts';
import { CLOCK_HIGH_WATER_MARK, readClock } from './clock.ts';
import { cannotOpen, type DatabaseFile, openDatabaseFile } from './database-file.ts';
import { EventIndex, type FlushProgress } from './event-index.ts';
import { checksumOfLines, isWhole, lengthOf, NO_CHECKSUM, SEAL_UNIT } from './line-check.ts';
import { Listings } from './listings.ts';
import { Memberships } from './memberships.ts';
import { Snapshots } from './snapshots.ts';

export interface SqliteLogOptions {
  /** Called before any method rejects with the error: the process must stop. */
  readonly onCorruption?: (error: LogCorruption) => void;
  /** Called once for each stream in which damage is met. */
  readonly onDamage?: (damage: StreamDamaged) => void;
}

/** Opens or creates the log in `path`, or in memory for ':memory:'. Throws an Error of one line. */
export function openSqliteLog(
  path: string,
  { onCorruption = () => {}, onDamage = () => {} }: SqliteLogOptions = {},
): SqliteLog {
  const file = openDatabaseFile(path);
  try {
    return new SqliteLog(file, { onCorruption, onDamage });
  } catch (error) {
    file.close();
    throw cannotOpen(path, error);
  }
}

/** Chambers that are moved on to their phase at a time, and the pause before the next ones: a step takes about 1 ms. */
const PHASES_PER_STEP = 100;
const PHASE_STEP_PAUSE_MS = 20;

/** After a failed write the clock takes as much room as a large move: its success shows that moves fit again. */
const PROBE_BYTES = 65_536;

const LOG_ID = /^[0-9a-f]{32}$/;
const LINE_BREAK = Buffer.from('\n');
/** Lines whose seals are read before it is estimated how many more fill a page. */
const SEALS_FIRST = 8;
const STREAMS_HASHED_MAX = 100_000;
/** Positions that one page over all chambers passes at most: those of accounts are skipped. */
const POSITIONS_PER_PAGE = 4_000;
/** The file's lock keeps other processes out. */
const SOLE_HOLD: Lease = { token: 'sole', release: async () => {} };
const NO_LINES: Page = { ndjson: Buffer.alloc(0), count: 0 };

class SqliteLog implements ForumLog {
  readonly logId: string;
  readonly isShared = false;
  readonly #file: DatabaseFile;
  readonly #options: Required<SqliteLogOptions>;
  readonly #damages = new Map<StreamId, StreamDamaged>();
  /** Of each stream of an earlier schema, the event up to which every line was hashed since the start. */
  readonly #hashedThrough = new LRUCache<StreamId, number>({ max: STREAMS_HASHED_MAX });
  readonly #statements: Statements;
  readonly #listings: Listings;
  readonly #snapshots: Snapshots;
  readonly #index: EventIndex;
  readonly #memberships: Memberships;
  readonly #write: (entries: readonly LogEntry[], registrations: readonly Registration[]) => FlushProgress;
  readonly #persistClock: (at: Millis) => number;
  #position: number;
  #lastAt: Millis;
  #phaseStep: NodeJS.Timeout | undefined;
  #writeFailure: ForumError | undefined;

  constructor(file: DatabaseFile, options: Required<SqliteLogOptions>) {
    const { db } = file;
    this.#file = file;
    this.#options = options;
    this.#statements = prepare(db);
    this.#listings = new Listings(db);
    this.#snapshots = new Snapshots(db);
    this.#write = db.transaction(this.#writeEntries.bind(this)).immediate;
    this.#persistClock = db.transaction(this.#persistAndAdvance.bind(this)).immediate;
    this.#index = new EventIndex(db);
    this.#memberships = new Memberships(db, this.#index);
    this.logId = this.#statements.recall.get('log_id') ?? '';
    if (!LOG_ID.test(this.logId)) throw new Error('the log has no id of 32 hex digits: restore a backup');
    requireNotMoved(this.#statements.recall.get(MOVED_TO));
    this.#position = db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck().get() ?? 0;
    this.#lastAt = readClock(db);
  }

  get lastAt(): Millis {
    return this.#lastAt;
  }

  get writeFailure(): ForumError | undefined {
    return this.#writeFailure;
  }

  get damagedStreams(): number {
    return this.#damages.size;
  }

  async append(
    entries: readonly LogEntry[],
    registrations: readonly Registration[] = [],
  ): Promise<ReadonlySet<StreamId>> {
    try {
      this.#file.requireUnchanged();
      const conflicts = this.#index.conflictsOf(entries);
      const accepted = conflicts.size === 0 ? entries : entries.filter(({ stream }) => !conflicts.has(stream));
      const flushing = this.#write(
        accepted,
        conflicts.size === 0 ? registrations : registrations.filter(({ did }) => !conflicts.has(did)),
      );
      // After the commit: a transaction that was rolled back uses up no positions.
      this.#index.committed(accepted, this.#position + 1, flushing);
      this.#position += accepted.length;
      this.#lastAt = accepted.at(-1)?.at ?? this.#lastAt;
      this.#writeFailure = undefined;
      return conflicts;
    } catch (error) {
      throw this.#writeFailed(error);
    }
  }

  /** This process is the only one that appends. */
  onGrowth(): void {}

  #writeEntries(entries: readonly LogEntry[], registrations: readonly Registration[]): FlushProgress {
    let position = this.#position;
    for (const { stream, eventId, at, line, signature, nodes, listings, snapshot } of entries) {
      const chamberId = typeof stream === 'number' ? stream : null;
      const account = typeof stream === 'string' ? stream : null;
      const signatureBytes = signature === null ? null : Buffer.from(signature, 'latin1');
      const checksums = [crc32(line), nodes && crc32(nodes)] as const;
      this.#statements.insert.run(++position, chamberId, account, eventId, line, signatureBytes, nodes, ...checksums);
      for (const listing of listings) {
        this.#listings.write(listing, at);
        if (listing.table === 'members') this.#memberships.own.delete(listing.did);
      }
      if (chamberId !== null) this.#memberships.known.delete(chamberId);
      if (snapshot !== undefined) this.#snapshots.write(stream, snapshot);
    }
    for (const registration of registrations) this.#listings.writeRegistration(registration);
    return this.#index.writeChunk(entries.length);
  }

  async lookUp(streams: readonly StreamId[], signatureKeys: readonly string[]): Promise<LookUp> {
    const found = new Map<string, string | StreamDamaged>();
    try {
      for (const key of signatureKeys) {
        const position =
          key.length === HIDDEN_KEY_CHARS ? this.#positionOfRegistration(key) : this.#index.positionOfSignature(key);
        const stored = position === undefined ? undefined : this.#statements.stored.get(position);
        if (stored !== undefined) found.set(key, this.#damageIn(stored.line, stored) ?? stored.line.toString());
      }
      const lastEventIds = new Map<StreamId, number>();
      for (const stream of streams) lastEventIds.set(stream, this.#index.lastEventId(stream));
      return { lastEventIds, lastChamberId: this.#index.lastChamberId, found };
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #positionOfRegistration(key: string): number | undefined {
    const found = this.#listings.registration(key);
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
      throw this.#failure(error);
    }
  }

  /** The lines are checked together: a call for each would take half as long again. */
  #readIndexed(stream: StreamId, after: number, limit: number): Page {
    const seals = this.#readSeals(stream, after, limit);
    const count = seals.length;
    if (count === 0) return NO_LINES;
    const [ndjson, lastEventId] = this.#statements.lines.get(stream, after, count) as [Buffer, number];
    if (lastEventId !== after + count) throw this.#lost(stream, after + 1);
    const checksum = checksumOfLines(seals);
    const hashedThrough = this.#hashedThrough.get(stream) ?? 0;
    const isSound = checksum === undefined ? lastEventId <= hashedThrough : checksum === crc32(ndjson);
    if (isSound) return { ndjson, count };
    // Lines of earlier schemas have no checksum. The lines that were checked are served, not those of the first read.
    const positions = seals.map((_, index) => this.#index.positionOf(stream, after + index + 1) ?? 0);
    const page = this.#readLines(positions, { stream, after }, PAGE_BYTES);
    if (after <= hashedThrough) this.#hashedThrough.set(stream, after + page.count);
    return page;
  }

  /** Of the lines of a page. */
  #readSeals(stream: StreamId, after: number, limit: number): readonly number[] {
    const seals: number[] = [];
    for (let bytes = 0, wanted = SEALS_FIRST; bytes < PAGE_BYTES && seals.length < limit; ) {
      const most = Math.min(wanted, limit - seals.length);
      const next = this.#statements.seals.all(stream, after + seals.length, most);
      for (const seal of next) {
        if (bytes >= PAGE_BYTES) break;
        seals.push(seal);
        bytes += lengthOf(seal) + 1;
      }
      if (next.length < most) break;
      wanted = Math.ceil(((PAGE_BYTES - bytes) * seals.length) / bytes) + 1;
    }
    return seals;
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
      const damage = this.#damageIn(stored.line, stored);
      if (damage !== undefined) throw damage;
      parts.push(stored.line, LINE_BREAK);
      bytes += stored.line.length + 1;
    }
    return { ndjson: Buffer.concat(parts, bytes), count };
  }

  #damageIn(line: Buffer, { position, stream, event_id: eventId, line_crc: checksum }: StoredLine) {
    if (checksum === crc32(line)) return undefined;
    const isSound = checksum === null && isWhole(line, this.#statements.nodes.get(position)?.nodes ?? null);
    if (isSound) return undefined;
    return this.noteDamage(new StreamDamaged(stream, eventId, `event ${eventId} is not as it was written`));
  }

  #lost(stream: StreamId, eventId: number): StreamDamaged {
    return this.noteDamage(new StreamDamaged(stream, eventId, `event ${eventId} is not where the index has it`));
  }

  damageOf(stream: StreamId): StreamDamaged | undefined {
    return this.#damages.get(stream);
  }

  noteDamage(damage: StreamDamaged): StreamDamaged {
    if (!this.#damages.has(damage.stream)) {
      this.#damages.set(damage.stream, damage);
      this.#options.onDamage(damage);
    }
    return damage;
  }

  async readSnapshot(stream: StreamId): Promise<Snapshot | undefined> {
    return this.#run(() => this.#snapshots.read(stream));
  }

  async writeSnapshot(stream: StreamId, snapshot: Snapshot): Promise<void> {
    this.#run(() => {
      this.#file.requireUnchanged();
      this.#snapshots.write(stream, snapshot);
    });
  }

  async dropSnapshot(stream: StreamId): Promise<void> {
    this.#run(() => {
      this.#file.requireUnchanged();
      this.#snapshots.drop(stream);
    });
  }

  async lastEventId(stream: StreamId): Promise<number> {
    return this.#run(() => this.#index.lastEventId(stream));
  }

  /** The order of all chambers is that of the appends. */
  async readAll(after: number, limit: number): Promise<OrderedPage> {
    return this.#run(() => {
      const end = Math.min(after + POSITIONS_PER_PAGE, this.#position);
      const parts: Buffer[] = [];
      const rows: (StoredLine & { readonly line: Buffer })[] = [];
      let bytes = 0;
      for (const row of this.#statements.chamberLines.iterate(after, end, limit)) {
        rows.push(row);
        bytes += row.line.length + 1;
        if (bytes >= PAGE_BYTES) break;
      }
      for (const row of rows) {
        const damage = this.#damageIn(row.line, row);
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

  async placeOf(chamberId: number, eventId: number): Promise<number | undefined> {
    return this.#run(() => this.#index.positionOf(chamberId, eventId));
  }

  async readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]> {
    return this.#run(() => refs.map((ref) => this.#readNode(chamberId, ref)));
  }

  #readNode(chamberId: number, { eventId, level }: NodeRef): Uint8Array {
    const position = this.#index.positionOf(chamberId, eventId);
    const stored = position === undefined ? undefined : this.#statements.nodes.get(position);
    if (stored?.stream !== chamberId || stored.event_id !== eventId) throw this.#lost(chamberId, eventId);
    const { nodes, nodes_crc: checksum, line } = stored;
    const node = nodes?.subarray(HASH_BYTES * level, HASH_BYTES * (level + 1));
    const isIntact =
      nodes &&
      (checksum === null ? this.#areNodesSound(chamberId, eventId, { nodes, line }) : checksum === crc32(nodes));
    if (isIntact && node?.length === HASH_BYTES) return node;
    const problem = `event ${eventId} has other tree nodes than those written`;
    throw this.noteDamage(new StreamDamaged(chamberId, eventId, problem));
  }

  /** Without a checksum, in events of earlier schemas: the leaf is the line's, and every parent that of its two children. */
  #areNodesSound(chamberId: number, eventId: number, { nodes, line }: Pick<StoredNodes, 'line'> & { nodes: Buffer }) {
    const nodeAt = (of: Buffer, level: number) => of.subarray(HASH_BYTES * level, HASH_BYTES * (level + 1));
    if (!isWhole(line, nodes)) return false;
    for (let level = 1; level < nodes.length / HASH_BYTES; level++) {
      const position = this.#index.positionOf(chamberId, eventId - 2 ** (level - 1));
      const left = position === undefined ? undefined : this.#statements.nodes.get(position)?.nodes;
      if (!left || !nodeAt(nodes, level).equals(nodeHash(nodeAt(left, level - 1), nodeAt(nodes, level - 1))))
        return false;
    }
    return true;
  }

  async operatorEmail(did: string): Promise<string | undefined> {
    return this.#run(() => this.#listings.operatorEmail(did));
  }

  async listChambers(query: ChamberListQuery): Promise<readonly ChamberListing[]> {
    return this.#run(() => this.#listings.chambers(query));
  }

  async listGraduatedIdeas(query: GraduatedQuery): Promise<readonly IdeaView[]> {
    return this.#run(() => this.#listings.graduatedIdeas(query));
  }

  async findIdea(ticker: string, chamberId: number | undefined): Promise<IdeaView | undefined> {
    return this.#run(() => this.#listings.idea(ticker, chamberId));
  }

  async listUnsettled(now: Millis, limit: number): Promise<readonly number[]> {
    return this.#run(() => this.#listings.unsettled(now, limit));
  }

  async listSettled(limit: number): Promise<readonly number[]> {
    return this.#run(() => this.#listings.settled(limit));
  }

  async listMemberships(did: string, limit: number): Promise<readonly Membership[]> {
    return this.#run(() => this.#memberships.list(did, limit));
  }

  async listChambersOf(did: string, query: Pick<ChamberListQuery, 'before' | 'limit'>) {
    return this.#run(() => this.#listings.chambersOf(did, query));
  }

  async listMembersAt(seats: readonly Seat[]): Promise<readonly (string | null)[]> {
    const memberAt = ([chamberId, turnOrder]: Seat) =>
      (turnOrder === null ? undefined : this.#memberships.memberAt(chamberId, turnOrder)) ?? null;
    return this.#run(() => seats.map(memberAt));
  }

  async agentRecord(did: string): Promise<AgentRecord> {
    return this.#run(() => this.#listings.record(did));
  }

  async countOpenChambers(creatorDid: string, max: number): Promise<number> {
    return this.#run(() => this.#listings.openChambers(creatorDid, max));
  }

  lease(): Lease {
    return SOLE_HOLD;
  }

  nodeState(): undefined {}

  async recall(name: string): Promise<string | undefined> {
    return this.#run(() => this.#statements.recall.get(name));
  }

  async remember(name: string, value: string): Promise<void> {
    this.#run(() => this.#statements.remember.run(name, value));
  }

  async persistClock(at: Millis): Promise<void> {
    let advanced: number;
    try {
      this.#file.requireUnchanged();
      advanced = this.#persistClock(at);
    } catch (error) {
      throw this.#writeFailed(error);
    }
    this.#writeFailure = undefined;
    this.#lastAt = Math.max(this.#lastAt, at);
    if (advanced < PHASES_PER_STEP || this.#phaseStep !== undefined) return;
    this.#phaseStep = setTimeout(() => {
      this.#phaseStep = undefined;
      // What fails now is tried again with the next reading of the clock.
      this.persistClock(at).catch(() => {});
    }, PHASE_STEP_PAUSE_MS).unref();
  }

  #persistAndAdvance(at: Millis): number {
    this.#statements.persist.run(CLOCK_HIGH_WATER_MARK, String(at).padEnd(this.#writeFailure ? PROBE_BYTES : 0));
    return this.#listings.advancePhases(at, PHASES_PER_STEP);
  }

  async close(): Promise<void> {
    clearTimeout(this.#phaseStep);
    this.#file.close();
  }

  #run<Result>(use: () => Result): Result {
    try {
      return use();
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #writeFailed(error: unknown): unknown {
    const failure = this.#failure(error);
    if (failure instanceof ForumError) this.#writeFailure = failure;
    return failure;
  }

  #failure(error: unknown): unknown {
    const failure = toLogError(error);
    if (failure instanceof LogCorruption) this.#options.onCorruption(failure);
    return failure;
  }
}

export type { SqliteLog };

const RETRY_AFTER_SECONDS = 1;
/** SQLite rolled the whole transaction back: a full disk, or another program that holds the write lock. */
const NOTHING_WRITTEN = /^SQLITE_(FULL|BUSY|LOCKED|NOMEM|READONLY)/;
const MEMORY_AND_DISK_DIFFER = /^SQLITE_(IOERR|CORRUPT|NOTADB|CANTOPEN|PROTOCOL|READONLY_DBMOVED)/;

/** FORUM_ERR_UNAVAILABLE, LogCorruption, or the error itself if it is a defect of ours. */
function toLogError(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError)) return error;
  if (MEMORY_AND_DISK_DIFFER.test(error.code)) {
    return new LogCorruption(`${error.code}: ${error.message}`, { cause: error });
  }
  if (!NOTHING_WRITTEN.test(error.code)) return error;
  return new ForumError('FORUM_ERR_UNAVAILABLE', 'the log cannot be written at the moment, retry', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause: error,
  });
}

interface StoredLine {
  readonly position: number;
  readonly stream: StreamId;
  readonly event_id: number;
  readonly line_crc: number | null;
}

interface StoredNodes {
  readonly stream: StreamId;
  readonly event_id: number;
  readonly line: Buffer;
  readonly nodes: Buffer | null;
  readonly nodes_crc: number | null;
}

type Range = [stream: StreamId, after: number, limit: number];

const STREAM = 'coalesce(chamber_id, account) AS stream';
/** An entry of the index that leads to another event finds nothing, so that the seals are not those of the lines. */
const RANGE = `FROM stream_events AS entry CROSS JOIN events ON events.position = entry.position
  AND events.event_id = entry.event_id AND coalesce(chamber_id, account) = entry.stream
  WHERE entry.stream = ? AND entry.event_id > ? ORDER BY entry.event_id LIMIT ?`;

/** Of events whose seals were read. */
const SEALED_RANGE = `FROM stream_events AS entry CROSS JOIN events ON events.position = entry.position
  WHERE entry.stream = ? AND entry.event_id > ? ORDER BY entry.event_id LIMIT ?`;

type Statements = ReturnType<typeof prepare>;

function prepare(db: Database.Database) {
  return {
    // By place: to bind by name takes a third longer, and this runs for every move.
    insert: db.prepare(
      `INSERT INTO events (position, chamber_id, account, event_id, line, signature, nodes, line_crc, nodes_crc)
       VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?, ?, ?, ?)`,
    ),
    stored: db.prepare<[number], StoredLine & { readonly line: Buffer }>(
      `SELECT position, ${STREAM}, event_id, line_crc, CAST(line AS BLOB) AS line FROM events WHERE position = ?`,
    ),
    chamberLines: db.prepare<[number, number, number], StoredLine & { readonly line: Buffer }>(
      `SELECT position, ${STREAM}, event_id, line_crc, CAST(line AS BLOB) AS line FROM events
       WHERE position > ? AND position <= ? AND chamber_id IS NOT NULL ORDER BY position LIMIT ?`,
    ),
    nodes: db.prepare<[number], StoredNodes>(
      `SELECT ${STREAM}, event_id, CAST(line AS BLOB) AS line, nodes, nodes_crc FROM events WHERE position = ?`,
    ),
    seals: db
      .prepare<Range, number>(`SELECT octet_length(line) * ${SEAL_UNIT} + coalesce(line_crc, ${NO_CHECKSUM}) ${RANGE}`)
      .pluck(),
    lines: db
      .prepare<Range, [Buffer, number]>(
        `SELECT CAST(group_concat(line || char(10), '') AS BLOB), max(event_id)
         FROM (SELECT line, entry.event_id ${SEALED_RANGE})`,
      )
      .raw(),
    recall: db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck(),
    remember: db.prepare<[string, string]>('INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)'),
    persist: db.prepare<[string, string]>('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)'),
  };
}
