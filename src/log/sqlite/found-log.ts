// The log in a database file, as a start finds it.
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Damages } from '../damage.ts';
import type { FoundLog } from '../found-log.ts';
import { readFoundLog } from '../sql/found-log.ts';
import { readClock } from './clock.ts';
import { sqlOn } from './connection.ts';
import { cannotOpen, requireOneName, requireUnlocked } from './database-file.ts';
import { requireKnownSchema } from './migration.ts';
import { SqlitePublishedTree } from './published-tree.ts';
import { SCHEMA_VERSION } from './schema.ts';

interface FindOptions {
  /** The service that has the file open is meant to: the lock is not tried. */
  readonly isInUse: boolean;
  /** The start makes the folder. */
  readonly isFolderMade: boolean;
}

/** Undefined where the start makes a new log. Throws the Error that the start would end with. */
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
