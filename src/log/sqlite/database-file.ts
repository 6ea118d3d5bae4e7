// The database file of a service: opened under one name, locked against a second service, and readable only by its owner.
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

/** The cache of each connection. A service has two connections. */
const CACHE_KIB = 16_384;
/** The page size of new files: twice SQLite's default, so that the lines of a commit touch half as many pages. */
export const DATABASE_PAGE_BYTES = 8_192;
/** Pages in the write-ahead log before a checkpoint (8 MiB). More pages would block a move for longer. */
const CHECKPOINT_PAGES = 1_024;
/** A write-ahead log that grew during an outside program's read is truncated to this size. */
const WAL_BYTES_KEPT = 8_388_608;
/** How long a statement waits for another program's write lock. Short, because the wait blocks the thread. */
const BUSY_TIMEOUT_MS = 500;
/** How long a start waits for a process that uses the database but may be about to exit. */
const LOCK_WAIT_MS = 3_000;
/** The initial size of SQLite's -shm files. */
const SHM_BYTES = 32_768;

const OWNER_ONLY = 0o600;
const IF_PRESENT = { throwIfNoEntry: false } as const;

export interface DatabaseFile {
  readonly db: Database.Database;
  /** Undefined for a database in memory. */
  readonly location: DatabasePath | undefined;
  close(): void;
}

/**
 * Opens or creates the database with exclusive access for this process, or in memory for ':memory:'. Throws a single-line Error, including
 * for a file with an earlier schema.
 */
export function openDatabaseFile(path: string): DatabaseFile {
  return open(path, requireCurrent);
}

/** Migrates an existing file of an earlier schema. Throws a single-line Error. */
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

/** Rejects earlier schemas, which may lack columns that programs read. */
export function requireCurrent(version: number): void {
  if (version === SCHEMA_VERSION) return;
  throw new Error(`the file has schema ${version}, which the first start of this version migrates`);
}

type RequireVersion = (version: number) => void;

function open(path: string, requireVersion: RequireVersion): DatabaseFile {
  if (path === ':memory:') {
    const db = connect(path, requireVersion);
    return { db, location: undefined, close: () => db.close() };
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

function lockedFile(location: DatabasePath, lock: Database.Database, db: Database.Database): DatabaseFile {
  const close = () => {
    if (!lock.open) return;
    db.close();
    reserveShm(location);
    lock.close();
  };
  return { db, location, close };
}

export function cannotOpen(path: string, error: unknown): Error {
  return new Error(`cannot open the database ${path}: ${reasonOf(error)}`, { cause: error });
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Resolves links in the path of a file that need not exist yet. Throws a single-line Error if the file can't be opened safely: under two names
 * it would have two write-ahead logs, and SQLite discards a write-ahead log whose database is missing or empty.
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

/** Rejects names that end with white space: the driver trims them, and would open a different file. */
export function requireName(path: string): void {
  if (path !== path.trimEnd()) throw new Error('the file name ends with white space');
}

/** Returns the path itself, or the target of a dangling link. */
function pathOfNewFile(path: string): string {
  const folder = dirname(path);
  if (statSync(folder, IF_PRESENT) === undefined) throw new Error(`the folder ${folder} does not exist`);
  const location = join(realpathSync(folder), basename(path));
  if (lstatSync(location, IF_PRESENT) === undefined) return location;
  return pathOfNewFile(resolve(dirname(location), readlinkSync(location)));
}

/** Locks a separate file, so that other programs can read the database. The system releases the lock no matter how the process ends. */
function lockWriter(path: string): Database.Database {
  createPrivate(path);
  const lock = new Database(path, { timeout: LOCK_WAIT_MS });
  try {
    // A journal on disk would fail on a full disk.
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

/** Throws the error that a start would throw if another process has the file open for writing. Creates nothing. */
export function requireUnlocked(file: string): void {
  const path = `${file}.lock`;
  if (existsSync(path)) lockWriter(path).close();
}

/**
 * Creates a file that only its owner can read. SQLite creates -wal and -shm with the same mode. An existing file keeps its mode and is not
 * opened: closing it would release the locks that SQLite holds on it in this process.
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

/** Rewrites the same value, because a read-only file opens without an error and would then reject every move. */
function requireWritable(db: Database.Database): void {
  try {
    db.pragma(`user_version = ${db.pragma('user_version', { simple: true })}`);
  } catch (error) {
    // On a full disk the service serves reads, and writes resume when there is space.
    if (!(error instanceof Database.SqliteError && error.code === 'SQLITE_FULL')) throw error;
  }
}

/**
 * Leaves an empty -shm, as after a crash, with the database's owner and mode. SQLite deletes the -shm with the last connection and needs space
 * for a new one to open a write-ahead log, so a later start on a full disk would fail.
 */
function reserveShm({ path, file }: DatabasePath): void {
  try {
    const shm = `${file}-shm`;
    const { mode, uid, gid } = statSync(path);
    writeFileSync(shm, Buffer.alloc(SHM_BYTES), { mode: OWNER_ONLY, flag: 'wx' });
    chmodSync(shm, mode & 0o777);
    if (process.getuid?.() === 0) chownSync(shm, uid, gid);
  } catch {
    // Another program has the database open and uses its -shm, or there is no space for one.
  }
}
