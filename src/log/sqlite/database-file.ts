// The database file of a service: opened under one name, locked against a second service, and readable by its owner alone.
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import Database from 'better-sqlite3';
import type { DatabasePath } from './file-watch.ts';
import { migrate, type OnMigration, requireKnownSchema } from './migration.ts';
import { createSchema, SCHEMA_VERSION } from './schema.ts';

/** For each connection: a service has two. */
const CACHE_KIB = 16_384;
/** For new files. It is twice SQLite's default, which halves the pages that the lines of one commit touch. */
export const DATABASE_PAGE_BYTES = 8_192;
/** Pages in the write-ahead log before a checkpoint (8 MiB): more would block a move for longer. */
const CHECKPOINT_PAGES = 1_024;
/** A write-ahead log that grew under an outside reader's snapshot is truncated to this size, several times its usual one. */
const WAL_BYTES_KEPT = 8_388_608;
/** How long a statement waits for another program's write lock; short, because it blocks its thread. */
const BUSY_TIMEOUT_MS = 500;
/** How long a start waits for a process that uses the database and may be about to end. */
const LOCK_WAIT_MS = 3_000;
/** The size that SQLite creates a -shm with. */
const SHM_BYTES = 32_768;

const OWNER_ONLY = 0o600;
const IF_PRESENT = { throwIfNoEntry: false } as const;

export interface DatabaseFile {
  readonly db: Database.Database;
  /** Undefined in memory. */
  readonly place: DatabasePath | undefined;
  close(): void;
}

/**
 * Opens or creates the database for this process alone, or in memory for ':memory:'. Throws an Error of one line, also for a file with an
 * earlier schema.
 */
export function openDatabaseFile(path: string): DatabaseFile {
  return open(path, requireCurrent);
}

/** Throws an Error of one line. */
export async function migrateDatabase(path: string, onMigration: OnMigration = () => {}): Promise<void> {
  if (path === ':memory:' || !existsSync(path)) return;
  const file = open(path, () => {});
  try {
    await migrate(file.db, onMigration);
  } catch (error) {
    throw cannotOpen(path, error);
  } finally {
    file.close();
  }
}

/** The lines of an earlier schema may lack columns that programs read. */
export function requireCurrent(version: number): void {
  if (version === SCHEMA_VERSION) return;
  throw new Error(`the file has schema ${version}, which the first start of this version migrates`);
}

type RequireVersion = (version: number) => void;

function open(path: string, requireVersion: RequireVersion): DatabaseFile {
  if (path === ':memory:') {
    const db = connect(path, requireVersion);
    return { db, place: undefined, close: () => db.close() };
  }
  let lock: Database.Database | undefined;
  try {
    const file = requireOneName(path);
    lock = lockWriter(`${file}.lock`);
    createPrivate(file);
    return lockedFile({ path, file }, lock, connect(file, requireVersion));
  } catch (error) {
    lock?.close();
    throw cannotOpen(path, error);
  }
}

function lockedFile(place: DatabasePath, lock: Database.Database, db: Database.Database): DatabaseFile {
  const close = () => {
    if (!lock.open) return;
    db.close();
    reserveShm(place);
    lock.close();
  };
  return { db, place, close };
}

export function cannotOpen(path: string, error: unknown): Error {
  return new Error(`cannot open the database ${path}: ${reasonOf(error)}`, { cause: error });
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Returns the path without links, of a file that need not exist yet. Throws an Error of one line if the file cannot be opened safely:
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

/** The driver trims names, and would open another file. An absolute path can't begin with white space. */
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

/** Locks a small file next to the database: other programs may read, and the system releases the lock however the process ends. */
function lockWriter(path: string): Database.Database {
  createPrivate(path);
  const lock = new Database(path, { timeout: LOCK_WAIT_MS });
  try {
    // A journal on disk would need room, which a full disk lacks.
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

/** Throws as a start would if another process has the file open for writing; creates nothing. */
export function requireUnlocked(file: string): void {
  const path = `${file}.lock`;
  if (existsSync(path)) lockWriter(path).close();
}

/**
 * SQLite creates -wal and -shm with the mode of their database. An existing file keeps its mode and is not opened here: closing it would
 * release the locks that SQLite holds on it in this process.
 */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', OWNER_ONLY));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function connect(path: string, requireVersion: RequireVersion): Database.Database {
  const db = openWriter(path);
  try {
    const version = requireKnownSchema(db);
    if (version === 0) db.transaction(() => createSchema(db)).immediate();
    else requireVersion(version);
    requireWritable(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

export function openWriter(path: string): Database.Database {
  const db = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    db.pragma(`page_size = ${DATABASE_PAGE_BYTES}`);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.pragma('recursive_triggers = ON');
    db.pragma(`cache_size = -${CACHE_KIB}`);
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    db.pragma(`journal_size_limit = ${WAL_BYTES_KEPT}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Rewrites the same value: a read-only file opens without an error, and would then reject every move. */
function requireWritable(db: Database.Database): void {
  try {
    db.pragma(`user_version = ${db.pragma('user_version', { simple: true })}`);
  } catch (error) {
    // On a full disk the service serves reads, and writes resume when there is room.
    if (!(error instanceof Database.SqliteError && error.code === 'SQLITE_FULL')) throw error;
  }
}

/**
 * SQLite deletes the -shm with the last connection, and opens no write-ahead log without room for a new one. So an empty one is left, with
 * the database's owner and mode, as after a crash: a later start on a disk that is full by then has room for it.
 */
function reserveShm({ path, file }: DatabasePath): void {
  try {
    const shm = `${file}-shm`;
    const { mode, uid, gid } = statSync(path);
    writeFileSync(shm, Buffer.alloc(SHM_BYTES), { mode: OWNER_ONLY, flag: 'wx' });
    chmodSync(shm, mode & 0o777);
    if (process.getuid?.() === 0) chownSync(shm, uid, gid);
  } catch {
    // Another program has the database open and needs its -shm, or there is no room for it now.
  }
}
