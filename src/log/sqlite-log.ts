// The log in one SQLite file: WAL, synchronous=FULL, one writer. An append that resolved is on disk.
import { randomBytes } from 'node:crypto';
import Database from 'better-sqlite3';
import type { ChamberListing } from '../../projections/listings.ts';
import type { IdeaView } from '../../projections/views.ts';
import { HASH_BYTES, type NodeRef } from '../crypto/merkle.ts';
import { fromLine } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';
import { columnBytes, EventIndex, type IndexProgress } from './event-index.ts';
import { LogCorruption, toLogError } from './failures.ts';
import { Listings } from './listings.ts';
import type { ChamberListQuery, ForumLog, LogEntry, Page, StreamId } from './log.ts';
import { PageReader } from './page-reader.ts';
import { sameFileCheck } from './same-file.ts';
import { migrate, SCHEMA_VERSION } from './schema.ts';
import { lockWriter } from './writer-lock.ts';

const CACHE_KIB = 32_768;
/** Of a new file. Twice SQLite's own: half as many pages to write for the lines of one commit. */
const PAGE_BYTES = 8_192;
/** Pages in the write-ahead log before they are carried over (2 MiB): more would hold up the process for longer at a time. */
const CHECKPOINT_PAGES = 256;
/** How long a statement waits for another program's write lock: it blocks the process, so it is short. */
const BUSY_TIMEOUT_MS = 500;

const TOLD_AT = 'told_at';

/** Opens or creates the log in `path`, or in memory for ':memory:'. Throws an Error that says in one line what is wrong. */
export function openSqliteLog(path: string): SqliteLog {
  if (path === ':memory:') return new SqliteLog(openDatabase(path), { unlock: () => {}, requireSameFile: () => {} });
  const unlock = lockWriter(path);
  try {
    const db = openDatabase(path);
    return closedOnError(db, () => new SqliteLog(db, { unlock, requireSameFile: sameFileCheck(path) }));
  } catch (error) {
    unlock();
    throw new Error(`cannot open the database ${path}: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
}

/** The connection of a program that writes, which must hold the writer's lock. */
export function openDatabase(path: string): Database.Database {
  const db = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  return closedOnError(db, () => {
    db.pragma(`page_size = ${PAGE_BYTES}`);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.pragma('recursive_triggers = ON');
    db.pragma(`cache_size = -${CACHE_KIB}`);
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    migrate(db, randomBytes(16).toString('hex'));
    requireWritable(db);
    return db;
  });
}

function closedOnError<Result>(db: Database.Database, use: () => Result): Result {
  try {
    return use();
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A file that may only be read opens all the same, and would refuse every move: this writes what is there already. */
function requireWritable(db: Database.Database): void {
  try {
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  } catch (error) {
    // On a full disk reads go on, and writes resume when there is room.
    if (!(error instanceof Database.SqliteError && error.code === 'SQLITE_FULL')) throw error;
  }
}

interface OpenFile {
  readonly unlock: () => void;
  readonly requireSameFile: () => void;
}

class SqliteLog implements ForumLog {
  readonly logId: string;
  readonly #db: Database.Database;
  readonly #file: OpenFile;
  readonly #listings: Listings;
  readonly #index: EventIndex;
  readonly #write: (entries: readonly LogEntry[]) => IndexProgress;
  readonly #insert: Database.Statement;
  readonly #line: Database.Statement<[number], string>;
  readonly #nodes: Database.Statement<[number], Buffer>;
  readonly #pages: PageReader;
  #position: number;
  #lastAt: Millis;

  constructor(db: Database.Database, file: OpenFile) {
    this.#db = db;
    this.#file = file;
    this.#listings = new Listings(db);
    this.#write = db.transaction((entries: readonly LogEntry[]) => this.#writeEntries(entries)).immediate;
    this.#insert = db.prepare(
      `INSERT INTO events (position, chamber_id, account, event_id, line, signature, nodes)
       VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?, ?)`,
    );
    this.#line = db.prepare<[number], string>('SELECT line FROM events WHERE position = ?').pluck();
    this.#nodes = db.prepare<[number], Buffer>('SELECT nodes FROM events WHERE position = ?').pluck();
    this.#index = new EventIndex(db);
    this.#pages = new PageReader(db, this.#index);
    this.logId = db.prepare("SELECT value FROM meta WHERE name = 'log_id'").pluck().get() as string;
    this.#position = db.prepare('SELECT coalesce(max(position), 0) FROM events').pluck().get() as number;
    this.#lastAt = Math.max(lastAt(db, this.#position), Number(this.recall(TOLD_AT) ?? 0));
  }

  get lastAt(): Millis {
    return this.#lastAt;
  }

  get lastChamberId(): number {
    return this.#index.lastChamberId();
  }

  async append(entries: readonly LogEntry[]): Promise<void> {
    const progress = this.#commit(entries);
    // Only now: a transaction that was rolled back must not use up positions.
    this.#index.committed(entries, this.#position + 1, progress);
    this.#position += entries.length;
    this.#lastAt = entries.at(-1)?.at ?? this.#lastAt;
  }

  #commit(entries: readonly LogEntry[]): IndexProgress {
    try {
      this.#file.requireSameFile();
      this.#index.requireNew(entries);
      return this.#write(entries);
    } catch (error) {
      throw toLogError(error);
    }
  }

  #writeEntries(entries: readonly LogEntry[]): IndexProgress {
    let position = this.#position;
    for (const { stream, eventId, line, signature, nodes, listings, operatorEmail } of entries) {
      const chamberId = typeof stream === 'number' ? stream : null;
      const account = typeof stream === 'string' ? stream : null;
      const signatureBytes = signature === null ? null : columnBytes(signature);
      this.#insert.run(++position, chamberId, account, eventId, line, signatureBytes, nodes);
      for (const listing of listings) this.#listings.write(listing);
      if (operatorEmail !== undefined && account !== null) this.#listings.writeContact(account, operatorEmail);
    }
    return this.#index.writeShare(entries.length);
  }

  async findBySignature(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return keys.map((key) => {
      const position = this.#index.positionOfSignature(key);
      return position === undefined ? undefined : this.#line.get(position);
    });
  }

  async readPage(stream: StreamId, after: number, limit: number): Promise<Page> {
    return this.#pages.read(stream, after, limit);
  }

  async lastEventId(stream: StreamId): Promise<number> {
    return this.#index.lastEventId(stream);
  }

  async readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]> {
    return refs.map(({ eventId, level }) => {
      const position = this.#index.positionOf(chamberId, eventId);
      const nodes = position === undefined ? undefined : this.#nodes.get(position);
      const node = nodes?.subarray(HASH_BYTES * level, HASH_BYTES * (level + 1));
      if (node?.length === HASH_BYTES) return node;
      throw new LogCorruption(`chamber ${chamberId} has no tree node of level ${level} at event ${eventId}`);
    });
  }

  async operatorEmail(did: string): Promise<string | undefined> {
    return this.#listings.operatorEmail(did);
  }

  async listChambers(query: ChamberListQuery): Promise<readonly ChamberListing[]> {
    return this.#listings.chambers(query);
  }

  async listGraduatedIdeas(limit: number): Promise<readonly IdeaView[]> {
    return this.#listings.graduatedIdeas(limit);
  }

  async findIdea(ticker: string, chamberId: number | undefined): Promise<IdeaView | undefined> {
    return this.#listings.idea(ticker, chamberId);
  }

  async listUnsettled(now: Millis, limit: number): Promise<readonly number[]> {
    return this.#listings.unsettled(now, limit);
  }

  async listSettled(limit: number): Promise<readonly number[]> {
    return this.#listings.settled(limit);
  }

  async countOpenChambers(creatorDid: string): Promise<number> {
    return this.#listings.openChambers(creatorDid);
  }

  recall(name: string): string | undefined {
    return this.#db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get(name);
  }

  remember(name: string, value: string): void {
    this.#db.prepare('INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)').run(name, value);
  }

  async noteTime(at: Millis): Promise<void> {
    try {
      this.#db.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)').run(TOLD_AT, String(at));
    } catch (error) {
      throw toLogError(error);
    }
    this.#lastAt = Math.max(this.#lastAt, at);
  }

  async close(): Promise<void> {
    this.#db.close();
    this.#file.unlock();
  }
}

export type { SqliteLog };

function lastAt(db: Database.Database, position: number): Millis {
  const line = db.prepare('SELECT line FROM events WHERE position = ?').pluck().get(position) as string | undefined;
  return line === undefined ? 0 : Date.parse(fromLine(line).ts);
}
