// The log in a database file, as a start finds it.
import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Damages } from '../damage.ts';
import { CHAIN_ID, COPIED_FROM, type FoundLog, OPEN_CHAMBERS_MAX } from '../found-log.ts';
import { HAD_KEYS } from '../log-id.ts';
import { MOVED_TO, requireNotMoved } from '../moved.ts';
import { Access } from './access.ts';
import { readClock, readReset } from './clock.ts';
import { cannotOpen, requireOneName, requireUnlocked } from './database-file.ts';
import { requireKnownSchema } from './migration.ts';
import { SqlitePublishedTree } from './published-tree.ts';
import { readMeta } from './reader.ts';
import { SCHEMA_VERSION } from './schema.ts';

interface FindOptions {
  /** The service that has the file open is meant to: the lock is not tried. */
  readonly isInUse: boolean;
  /** The start makes the folder. */
  readonly isFolderMade: boolean;
}

/** Undefined where the start makes a new log. Throws the Error that the start would end with. */
export function findSqliteLog(path: string, { isInUse, isFolderMade }: FindOptions): FoundLog | undefined {
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
    return withReader(file, readFound(file));
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

function withReader<Result>(file: string, read: (db: Database.Database) => Result): Result {
  const db = new Database(file, { readonly: true, fileMustExist: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

const readFound =
  (file: string) =>
  (db: Database.Database): FoundLog | undefined => {
    const version = requireKnownSchema(db);
    if (version === 0) return undefined;
    requireNotMoved(readMeta(db, MOVED_TO));
    const logId = readMeta(db, 'log_id') ?? '';
    const chainId = readMeta(db, CHAIN_ID);
    const isMigrationDue = version !== SCHEMA_VERSION;
    return {
      logId,
      isMigrationDue,
      hadKeys: readMeta(db, HAD_KEYS) !== undefined,
      isCopy: readMeta(db, COPIED_FROM) !== undefined,
      chainId: chainId === undefined ? undefined : Number(chainId),
      lastAt: readClock(db),
      now: undefined,
      reset: readReset(db),
      ...lastChambers(db),
      async proveTree(work) {
        if (isMigrationDue) return;
        const reader = new Database(file, { readonly: true, fileMustExist: true });
        const access = new Access({ db: reader, close: () => reader.close() }, () => {});
        try {
          await work(new SqlitePublishedTree({ logId, access, damages: new Damages() }));
        } finally {
          reader.close();
        }
      },
    };
  };

function lastChambers(db: Database.Database) {
  const last = db.prepare<[], number>('SELECT coalesce(max(chamber_id), 0) FROM chambers').pluck();
  const open = 'SELECT chamber_id FROM chambers WHERE NOT is_committed ORDER BY chamber_id DESC LIMIT ?';
  return {
    lastChamberId: last.get() ?? 0,
    openChamberIds: db.prepare<[number], number>(open).pluck().all(OPEN_CHAMBERS_MAX),
  };
}
