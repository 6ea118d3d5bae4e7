// Reads a database file without changing it, even while a service runs on it.
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { DamagedStreams } from '../damage.ts';
import type { ExistingLog } from '../existing-log.ts';
import { readExistingLog } from '../sql/meta.ts';
import { sqlOn } from './connection.ts';
import { cannotOpen, reasonOf, requireOneName, requireUnlocked } from './database-file.ts';
import { readClock } from './meta.ts';
import { requireKnownSchema } from './migration.ts';
import { SqlitePublishedTree } from './published-tree.ts';
import { SCHEMA_VERSION } from './schema.ts';

/** Opens the file read-only. Throws a single-line Error. */
export function openReader(path: string): Database.Database {
  let db: Database.Database | undefined;
  try {
    // Even a reader discards a write-ahead log whose database is missing or empty.
    const file = requireOneName(path);
    if (!existsSync(file)) throw new Error('file not found');
    db = new Database(file, { readonly: true, fileMustExist: true });
    if (requireKnownSchema(db) === 0) throw new Error('the file contains no log');
    return db;
  } catch (error) {
    db?.close();
    throw new Error(`cannot read the database ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

interface FindOptions {
  /** Whether a service is expected to have the file open. Then the lock is not checked. */
  readonly isInUse: boolean;
  /** Whether a start would create a missing folder. */
  readonly createsFolder: boolean;
}

/** Returns undefined if a start would create a new log. Throws the same Error with which a start would fail. */
export async function findSqliteLog(
  path: string,
  { isInUse, createsFolder }: FindOptions,
): Promise<ExistingLog | undefined> {
  if (path === ':memory:') return undefined;
  try {
    if (createsFolder && !existsSync(dirname(path))) {
      requireWritable('.');
      return undefined;
    }
    const file = requireOneName(path);
    requireWritable(dirname(file));
    if (!isInUse) requireUnlocked(file);
    if (!existsSync(file)) return undefined;
    requireWritable(file);
    return await withReader(file, (db) => readExisting(db, file));
  } catch (error) {
    throw cannotOpen(path, error);
  }
}

function requireWritable(path: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw new Error(`${path} cannot be written (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  }
}

async function withReader<Result>(file: string, read: (db: Database.Database) => Promise<Result>): Promise<Result> {
  const db = new Database(file, { readonly: true, fileMustExist: true });
  try {
    return await read(db);
  } finally {
    db.close();
  }
}

async function readExisting(db: Database.Database, file: string): Promise<ExistingLog | undefined> {
  const version = requireKnownSchema(db);
  if (version === 0) return undefined;
  const isMigrationDue = version !== SCHEMA_VERSION;
  const log = await readExistingLog(sqlOn(db), {
    isMigrationDue,
    lastAt: readClock(db),
    now: undefined,
    async withTree(work) {
      if (isMigrationDue) return;
      await withReader(file, (reader) =>
        work(new SqlitePublishedTree({ logId: log.logId, sql: sqlOn(reader), damagedStreams: new DamagedStreams() })),
      );
    },
  });
  return log;
}
