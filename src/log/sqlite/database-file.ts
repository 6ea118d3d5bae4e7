// The database file of a service: found under one name, locked for one writer, readable by its owner alone, and watched while
// it is open. SQLite keeps writing to files that were deleted or replaced, and those writes die with the process.
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { LogCorruption } from '../damage.ts';
import { migrate, type OnMigration } from './migration.ts';
import { SCHEMA_VERSION } from './schema.ts';

const CACHE_KIB = 32_768;
/** The page size of a new file. It is twice SQLite's own: half as many pages to write for the lines of one commit. */
export const DATABASE_PAGE_BYTES = 8_192;
/** Pages in the write-ahead log before a checkpoint (2 MiB): more would block the process for longer at a time. */
const CHECKPOINT_PAGES = 256;
/** A write-ahead log that grew under an outside reader's snapshot is cut back to this size, several times its usual one. */
const WAL_BYTES_KEPT = 8_388_608;
/** How long a statement waits for another program's write lock: it blocks the process, so it is short. */
const BUSY_TIMEOUT_MS = 500;
/** How long a start waits for a process that uses the database and may be about to end. */
const LOCK_WAIT_MS = 3_000;

const OWNER_ONLY = 0o600;
const IF_PRESENT = { throwIfNoEntry: false } as const;

export interface DatabaseFile {
  readonly db: Database.Database;
  /** Throws LogCorruption once the file, its -wal or its -shm was deleted, replaced or truncated; undefined for one in memory. */
  requireUnchanged?(): void;
  close(): void;
}

/** Opens or creates the database for this process alone, or in memory for ':memory:'. Throws an Error of one line. */
export function openDatabaseFile(path: string, onMigration?: OnMigration): DatabaseFile {
  if (path === ':memory:') {
    const db = connect(path);
    const close = () => {
      db.close();
    };
    return { db, close };
  }
  let lock: Database.Database | undefined;
  let db: Database.Database | undefined;
  try {
    const file = requireOneName(path);
    lock = lockWriter(`${file}.lock`);
    createPrivate(file);
    db = connect(file, onMigration);
    return new WatchedFile({ db, lock, path, file });
  } catch (error) {
    db?.close();
    lock?.close();
    throw cannotOpen(path, error);
  }
}

export function cannotOpen(path: string, error: unknown): Error {
  return new Error(`cannot open the database ${path}: ${reasonOf(error)}`, { cause: error });
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * The path without links, of a file that need not exist yet. Throws an Error of one line if the file cannot be opened safely:
 * under two names it would have two write-ahead logs, and SQLite discards a write-ahead log that has lost its file.
 */
export function requireOneName(path: string): string {
  requireName(path);
  const found = statSync(path, IF_PRESENT);
  if (found !== undefined && !found.isFile()) throw new Error('not a regular file');
  const { size, nlink } = found ?? { size: 0, nlink: 0 };
  if (nlink > 1) throw new Error(`the file has ${nlink} names (hard links): remove all but one`);
  const file = found === undefined ? pathOfNewFile(path) : realpathSync(path);
  if (size === 0 && (statSync(`${file}-wal`, IF_PRESENT)?.size ?? 0) > 0) {
    throw new Error(
      `the file is missing or empty, but ${file}-wal holds part of it: restore the file, or move the -wal away`,
    );
  }
  return file;
}

/** The binding drops white space at both ends of a name, so that it would open another file. Callers make relative paths absolute. */
export function requireName(path: string): void {
  if (path !== path.trimEnd()) throw new Error('the name of the file ends with white space');
}

/** The path itself, or the target of a dangling link. */
function pathOfNewFile(path: string): string {
  const folder = dirname(path);
  if (statSync(folder, IF_PRESENT) === undefined) throw new Error(`the folder ${folder} does not exist`);
  const place = join(realpathSync(folder), basename(path));
  if (lstatSync(place, IF_PRESENT) === undefined) return place;
  return pathOfNewFile(resolve(dirname(place), readlinkSync(place)));
}

/** A lock on a small file next to the database, which the system releases however the process ends; other programs may read. */
function lockWriter(path: string): Database.Database {
  createPrivate(path);
  const lock = new Database(path, { timeout: LOCK_WAIT_MS });
  try {
    // A journal on disk would need room, which a full one doesn't have.
    lock.pragma('journal_mode = MEMORY');
    lock.pragma('locking_mode = EXCLUSIVE');
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    const isHeld = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
    throw new Error(isHeld ? 'another process is using it' : `cannot lock ${path}: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

/** Throws as a start would if another process has the file open for writing; makes nothing. */
export function requireUnlocked(file: string): void {
  const path = `${file}.lock`;
  if (existsSync(path)) lockWriter(path).close();
}

/**
 * SQLite creates -wal and -shm with the mode of their database. An existing file keeps its mode and is not opened here: to close it
 * would release the locks that SQLite holds on it in this process.
 */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', OWNER_ONLY));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function connect(path: string, onMigration?: OnMigration): Database.Database {
  const db = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    db.pragma(`page_size = ${DATABASE_PAGE_BYTES}`);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.pragma('recursive_triggers = ON');
    db.pragma(`cache_size = -${CACHE_KIB}`);
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    db.pragma(`journal_size_limit = ${WAL_BYTES_KEPT}`);
    migrate(db, onMigration);
    requireWritable(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Writes a value that is there already: a read-only file opens without complaint and would then reject every move. */
function requireWritable(db: Database.Database): void {
  try {
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  } catch (error) {
    // The service goes on reading with a full disk, and writes resume when there is room.
    if (!(error instanceof Database.SqliteError && error.code === 'SQLITE_FULL')) throw error;
  }
}

/** Documented at sqlite.org/walformat.html: what the -wal must hold follows from the frame count in the -shm's header. */
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const FRAMES_OFFSET = 16;

class WatchedFile implements DatabaseFile {
  readonly db: Database.Database;
  readonly #lock: Database.Database;
  readonly #main: Watched;
  readonly #wal: Watched;
  readonly #shm: Watched;
  readonly #shmDescriptor: number;
  readonly #frameCount = new Uint32Array(1);
  readonly #frameBytes: number;
  #shmBytes = 0;

  constructor({
    db,
    lock,
    path,
    file,
  }: { db: Database.Database; lock: Database.Database; path: string; file: string }) {
    this.db = db;
    this.#lock = lock;
    this.#main = watch(path);
    this.#wal = watch(`${file}-wal`);
    this.#shm = watch(`${file}-shm`);
    this.#frameBytes = FRAME_HEADER_BYTES + (db.pragma('page_size', { simple: true }) as number);
    this.#shmDescriptor = openSync(this.#shm.path, 'r');
  }

  requireUnchanged(): void {
    requireSame(this.#main, 1);
    this.#shmBytes = requireSame(this.#shm, this.#shmBytes);
    if (statSync(this.#wal.path, IF_PRESENT) === undefined) throw this.#saveDeletedWal();
    const walBytes = requireSame(this.#wal, 0);
    // Read after the size: another program's checkpoint resets the count before it truncates the file.
    readSync(this.#shmDescriptor, this.#frameCount, 0, 4, FRAMES_OFFSET);
    const frames = this.#frameCount[0] ?? 0;
    if (frames > 0 && walBytes < WAL_HEADER_BYTES + frames * this.#frameBytes) throw changed(this.#wal, 'truncated');
  }

  /**
   * SQLite's own descriptor still reads the deleted file, so a checkpoint writes accepted moves into the main one. It overwrites nothing
   * of another program that has opened the database since: such a program has made a new -wal, which counts as replaced.
   */
  #saveDeletedWal(): LogCorruption {
    const outcome = isCheckpointed(this.db)
      ? 'all that was answered has been saved in the database'
      : 'what was answered last may be lost';
    return changed(this.#wal, 'deleted', `: ${outcome}`);
  }

  /** The descriptor outlives the connection: closing it earlier would release SQLite's locks on the -shm. */
  close(): void {
    if (!this.db.open) return;
    this.db.close();
    closeSync(this.#shmDescriptor);
    reserveShm(this.#shm.path, this.#main.path);
    this.#lock.close();
  }
}

/** What SQLite makes it of at first, when it opens a write-ahead log. */
const SHM_BYTES = 32_768;

/**
 * SQLite deletes the -shm with the last connection, and opens no write-ahead log without room for a new one. So it is left there, empty and
 * with the database's owner and mode, as a crash would leave it: a later start on a disk that is full by then has its room.
 */
function reserveShm(path: string, database: string): void {
  try {
    const { mode, uid, gid } = statSync(database);
    writeFileSync(path, Buffer.alloc(SHM_BYTES), { mode: OWNER_ONLY, flag: 'wx' });
    chmodSync(path, mode & 0o777);
    if (process.getuid?.() === 0) chownSync(path, uid, gid);
  } catch {
    // Another program has the database open, and with it the file, or there is no room for it now.
  }
}

interface Watched {
  readonly path: string;
  readonly ino: number;
  readonly dev: number;
}

function watch(path: string): Watched {
  const { ino, dev } = statSync(path);
  return { path, ino, dev };
}

/** Returns the size. */
function requireSame(watched: Watched, bytesMin: number): number {
  const found = statSync(watched.path, IF_PRESENT);
  if (found === undefined) throw changed(watched, 'deleted');
  if (found.ino !== watched.ino || found.dev !== watched.dev) throw changed(watched, 'replaced');
  if (found.size < bytesMin) throw changed(watched, 'truncated');
  return found.size;
}

interface CheckpointResult {
  readonly busy: number;
  /** Frames in the write-ahead log, and those of them that the main file holds. */
  readonly log: number;
  readonly checkpointed: number;
}

/** Writes the whole write-ahead log into the main file, unless an outside reader needs the former pages. */
function isCheckpointed(db: Database.Database): boolean {
  try {
    const [result] = db.pragma('wal_checkpoint(FULL)') as CheckpointResult[];
    return result?.busy === 0 && result.checkpointed === result.log;
  } catch {
    // The caller ends the process in any case.
    return false;
  }
}

function changed({ path }: Watched, how: string, outcome = ''): LogCorruption {
  return new LogCorruption(`${path} was ${how} while it was open${outcome}`);
}
