// Reads a database file without changing it, also while a service runs on it.
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Damages } from '../damage.ts';
import type { FoundLog } from '../found-log.ts';
import { readFoundLog } from '../sql/meta.ts';
import { sqlOn } from './connection.ts';
import { cannotOpen, reasonOf, requireOneName, requireUnlocked } from './database-file.ts';
import { readClock } from './meta.ts';
import { requireKnownSchema } from './migration.ts';
import { SqlitePublishedTree } from './published-tree.ts';
import { SCHEMA_VERSION } from './schema.ts';

/** Opens the file read-only; throws an Error of one line. */
export function openReader(path: string): Database.Database {
  let db: Database.Database | undefined;
  try {
    // Even a reader discards a write-ahead log that has lost its file.
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
  /** A service is expected to have the file open: the lock is not tried. */
  readonly isInUse: boolean;
  /** A start creates the folder. */
  readonly isFolderMade: boolean;
}

/** Returns undefined if a start would create a new log. Throws the Error that a start would end with. */
export async function findSqliteLog(
  path: string,
  { isInUse, isFolderMade }: FindOptions,
): Promise<FoundLog | undefined> {
  if (path === ':memory:') return undefined;
  try {
    if (isFolderMade && !existsSync(dirname(path))) {
      requireWritable('.');
      return undefined;
    }
    const file = requireOneName(path);
    requireWritable(dirname(file));
    if (!isInUse) requireUnlocked(file);
    if (!existsSync(file)) return undefined;
    requireWritable(file);
    return await withReader(file, (db) => readFound(db, file));
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

async function readFound(db: Database.Database, file: string): Promise<FoundLog | undefined> {
  const version = requireKnownSchema(db);
  if (version === 0) return undefined;
  const isMigrationDue = version !== SCHEMA_VERSION;
  const log = await readFoundLog(sqlOn(db), {
    isMigrationDue,
    lastAt: readClock(db),
    now: undefined,
    async proveTree(work) {
      if (isMigrationDue) return;
      await withReader(file, (reader) =>
        work(new SqlitePublishedTree({ logId: log.logId, sql: sqlOn(reader), damages: new Damages() })),
      );
    },
  });
  return log;
}
