// The log in one SQLite file: WAL, synchronous=FULL, one writer. An append that resolved is on disk. Every failure of the
// store is one of two: nothing was written and a retry may succeed, or memory and disk may differ and the process must stop.
import Database from 'better-sqlite3';
import type { ChamberListing } from '../../../projections/listings.ts';
import type { IdeaView } from '../../../projections/views.ts';
import { HASH_BYTES, type NodeRef } from '../../crypto/merkle.ts';
import { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import {
  type ChamberListQuery,
  type ForumLog,
  LogCorruption,
  type LogEntry,
  type Page,
  type StreamId,
} from '../log.ts';
import { PAGE_BYTES } from '../pages.ts';
import { CLOCK_HIGH_WATER_MARK, readClock } from './clock.ts';
import { cannotOpen, type DatabaseFile, openDatabaseFile } from './database-file.ts';
import { EventIndex, type FlushProgress } from './event-index.ts';
import { Listings } from './listings.ts';

export interface SqliteLogOptions {
  /** Called before anybody else sees the error, whichever method met it: the process must stop. */
  readonly onCorruption?: (error: LogCorruption) => void;
}

/** Opens or creates the log in `path`, or in memory for ':memory:'. Throws an Error of one line. */
export function openSqliteLog(path: string, { onCorruption = () => {} }: SqliteLogOptions = {}): SqliteLog {
  const file = openDatabaseFile(path);
  try {
    return new SqliteLog(file, onCorruption);
  } catch (error) {
    file.close();
    throw cannotOpen(path, error);
  }
}

/** Chambers that are moved on to their phase at a time, and the pause before the next ones: a step takes about 1 ms. */
const PHASES_PER_STEP = 100;
const PHASE_STEP_PAUSE_MS = 20;

const NO_LINES: Page = { ndjson: Buffer.alloc(0), count: 0 };

class SqliteLog implements ForumLog {
  readonly logId: string;
  readonly #file: DatabaseFile;
  readonly #onCorruption: (error: LogCorruption) => void;
  readonly #statements: Statements;
  readonly #listings: Listings;
  readonly #index: EventIndex;
  readonly #write: (entries: readonly LogEntry[]) => FlushProgress;
  readonly #persistClock: (at: Millis) => number;
  #position: number;
  #lastAt: Millis;
  #phaseStep: NodeJS.Timeout | undefined;

  constructor(file: DatabaseFile, onCorruption: (error: LogCorruption) => void) {
    const { db } = file;
    this.#file = file;
    this.#onCorruption = onCorruption;
    this.#statements = prepare(db);
    this.#listings = new Listings(db);
    this.#write = db.transaction(this.#writeEntries.bind(this)).immediate;
    this.#persistClock = db.transaction(this.#persistAndAdvance.bind(this)).immediate;
    this.#index = new EventIndex(db);
    this.logId = this.#statements.recall.get('log_id') ?? '';
    this.#position = db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck().get() ?? 0;
    this.#lastAt = readClock(db);
  }

  get lastAt(): Millis {
    return this.#lastAt;
  }

  get lastChamberId(): number {
    return this.#run(() => this.#index.lastChamberId());
  }

  async append(entries: readonly LogEntry[]): Promise<void> {
    try {
      this.#file.requireUnchanged();
      this.#index.requireNew(entries);
      const flushing = this.#write(entries);
      // After the commit: a transaction that was rolled back uses up no positions.
      this.#index.committed(entries, this.#position + 1, flushing);
    } catch (error) {
      throw this.#failure(error);
    }
    this.#position += entries.length;
    this.#lastAt = entries.at(-1)?.at ?? this.#lastAt;
  }

  #writeEntries(entries: readonly LogEntry[]): FlushProgress {
    let position = this.#position;
    for (const { stream, eventId, at, line, signature, nodes, listings, operatorEmail } of entries) {
      const chamberId = typeof stream === 'number' ? stream : null;
      const account = typeof stream === 'string' ? stream : null;
      const signatureBytes = signature === null ? null : Buffer.from(signature, 'latin1');
      this.#statements.insert.run(++position, chamberId, account, eventId, line, signatureBytes, nodes);
      for (const listing of listings) this.#listings.write(listing, at);
      if (operatorEmail !== undefined && account !== null) this.#listings.writeContact(account, operatorEmail);
    }
    return this.#index.writeChunk(entries.length);
  }

  async findBySignature(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    try {
      const lines: (string | undefined)[] = [];
      for (const key of keys) {
        const position = this.#index.positionOfSignature(key);
        lines.push(position === undefined ? undefined : this.#statements.line.get(position));
      }
      return lines;
    } catch (error) {
      throw this.#failure(error);
    }
  }

  /** The newest lines by their positions in memory; before them a page of history, which SQLite joins into one buffer. */
  async readPage(stream: StreamId, after: number, limit: number): Promise<Page> {
    try {
      let positions = this.#index.recentPositions(stream, after, limit);
      const indexed = positions.length > 0 ? NO_LINES : this.#readIndexed(stream, after, limit);
      let { count } = indexed;
      let bytes = indexed.ndjson.length;
      if (count > 0) positions = this.#index.recentPositions(stream, after + count, limit - count);
      const parts = count > 0 ? [indexed.ndjson] : [];
      for (const position of positions) {
        if (bytes >= PAGE_BYTES) break;
        const line = this.#statements.lineBytes.get(position) as Buffer;
        parts.push(line);
        bytes += line.length;
        count++;
      }
      return parts.length === 0 ? NO_LINES : { ndjson: Buffer.concat(parts, bytes), count };
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #readIndexed(stream: StreamId, after: number, limit: number): Page {
    let bytes = 0;
    let count = 0;
    for (const length of this.#statements.lengths.iterate(stream, after, limit)) {
      count++;
      bytes += length + 1;
      if (bytes >= PAGE_BYTES) break;
    }
    return count === 0 ? NO_LINES : { ndjson: this.#statements.lines.get(stream, after, count) as Buffer, count };
  }

  async lastEventId(stream: StreamId): Promise<number> {
    return this.#run(() => this.#index.lastEventId(stream));
  }

  async readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]> {
    return this.#run(() => refs.map((ref) => this.#readNode(chamberId, ref)));
  }

  #readNode(chamberId: number, { eventId, level }: NodeRef): Uint8Array {
    const position = this.#index.positionOf(chamberId, eventId);
    const nodes = position === undefined ? undefined : this.#statements.nodes.get(position);
    const node = nodes?.subarray(HASH_BYTES * level, HASH_BYTES * (level + 1));
    if (node?.length === HASH_BYTES) return node;
    throw new LogCorruption(`chamber ${chamberId} has no tree node of level ${level} at event ${eventId}`);
  }

  async operatorEmail(did: string): Promise<string | undefined> {
    return this.#run(() => this.#listings.operatorEmail(did));
  }

  async listChambers(query: ChamberListQuery): Promise<readonly ChamberListing[]> {
    return this.#run(() => this.#listings.chambers(query));
  }

  async listGraduatedIdeas(limit: number): Promise<readonly IdeaView[]> {
    return this.#run(() => this.#listings.graduatedIdeas(limit));
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

  async countOpenChambers(creatorDid: string, max: number): Promise<number> {
    return this.#run(() => this.#listings.openChambers(creatorDid, max));
  }

  recall(name: string): string | undefined {
    return this.#run(() => this.#statements.recall.get(name));
  }

  remember(name: string, value: string): void {
    this.#run(() => this.#statements.remember.run(name, value));
  }

  async persistClock(at: Millis): Promise<void> {
    const advanced = this.#run(() => {
      this.#file.requireUnchanged();
      return this.#persistClock(at);
    });
    this.#lastAt = Math.max(this.#lastAt, at);
    if (advanced < PHASES_PER_STEP || this.#phaseStep !== undefined) return;
    this.#phaseStep = setTimeout(() => {
      this.#phaseStep = undefined;
      // What fails now is tried again with the next reading of the clock.
      this.persistClock(at).catch(() => {});
    }, PHASE_STEP_PAUSE_MS).unref();
  }

  #persistAndAdvance(at: Millis): number {
    this.#statements.persist.run(CLOCK_HIGH_WATER_MARK, String(at));
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

  #failure(error: unknown): unknown {
    const failure = toLogError(error);
    if (failure instanceof LogCorruption) this.#onCorruption(failure);
    return failure;
  }
}

export type { SqliteLog };

const RETRY_AFTER_SECONDS = '1';
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
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
    cause: error,
  });
}

type Range = [stream: StreamId, after: number, limit: number];

const RANGE = `FROM stream_events AS entry CROSS JOIN events ON events.position = entry.position
  WHERE entry.stream = ? AND entry.event_id > ? ORDER BY entry.event_id LIMIT ?`;

type Statements = ReturnType<typeof prepare>;

function prepare(db: Database.Database) {
  return {
    insert: db.prepare(
      `INSERT INTO events (position, chamber_id, account, event_id, line, signature, nodes)
       VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?, ?)`,
    ),
    line: db.prepare<[number], string>('SELECT line FROM events WHERE position = ?').pluck(),
    lineBytes: db
      .prepare<[number], Buffer>('SELECT CAST(line || char(10) AS BLOB) FROM events WHERE position = ?')
      .pluck(),
    nodes: db.prepare<[number], Buffer>('SELECT nodes FROM events WHERE position = ?').pluck(),
    lengths: db.prepare<Range, number>(`SELECT octet_length(line) ${RANGE}`).pluck(),
    lines: db
      .prepare<Range, Buffer>(
        `SELECT CAST(group_concat(line, char(10)) || char(10) AS BLOB) FROM (SELECT line ${RANGE})`,
      )
      .pluck(),
    recall: db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck(),
    remember: db.prepare<[string, string]>('INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)'),
    persist: db.prepare<[string, string]>('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)'),
  };
}
