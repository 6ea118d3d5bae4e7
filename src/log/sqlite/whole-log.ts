// A database file as one transaction of a program.
import { existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import { draftOf, moveFile } from '../../files/durable-file.ts';
import { createDerivedTables, DERIVED_TABLES, SNAPSHOTS } from '../sql/tables.ts';
import { type NewLog, readMeta, type WholeLine, type WholeLog, type WritableLog, writeMeta } from '../sql/whole-log.ts';
import { COPIED_THROUGH, checkFile } from './check-file.ts';
import { readClock } from './clock.ts';
import { transactionOn } from './connection.ts';
import {
  createPrivate,
  DATABASE_PAGE_BYTES,
  openDatabaseFile,
  requireCurrent,
  requireOneName,
} from './database-file.ts';
import { SQLITE } from './dialect.ts';
import { openReader } from './reader.ts';
import { createSchema } from './schema.ts';

/** Reads the file also while the service runs. Throws an Error of one line. */
export function readSqliteLog(path: string): WholeLog {
  const db = openReader(path);
  try {
    requireCurrent(db.pragma('user_version', { simple: true }) as number);
    db.exec('BEGIN');
    return {
      ...wholeLogOn(db),
      close: async () => {
        db.close();
      },
    };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Holds the file's lock, as a service would, and SQLite's own. Throws an Error of one line. */
export function openSqliteLog(path: string): WritableLog {
  // The reader makes no file that is missing.
  openReader(path).close();
  const file = openDatabaseFile(path);
  const { db } = file;
  try {
    db.exec('BEGIN IMMEDIATE');
  } catch (error) {
    file.close();
    throw error;
  }
  return {
    ...wholeLogOn(db),
    now: async () => Date.now(),
    requireNoService: async () => {},
    holdAppends: async () => {},
    placeLines: async () => {},
    allowAppends: async () => {},
    async emptyDerivedTables() {
      db.exec('REINDEX');
      for (const table of [...DERIVED_TABLES, SNAPSHOTS.name]) db.exec(`DROP TABLE IF EXISTS ${table}`);
      db.exec(createDerivedTables(SQLITE));
    },
    async commit() {
      db.exec('COMMIT');
    },
    close: async () => file.close(),
  };
}

/** Is a file next to the path until it is committed. Throws an Error of one line if there is a file already. */
export function createSqliteLog(path: string): NewLog {
  if (existsSync(path)) throw new Error(`${path} exists already: name a new file`);
  requireOneName(path);
  const draft = draftOf(resolve(path));
  createPrivate(draft);
  const db = new Database(draft);
  const close = async () => {
    db.close();
    for (const file of [draft, `${draft}-journal`]) rmSync(file, { force: true });
  };
  db.pragma(`page_size = ${DATABASE_PAGE_BYTES}`);
  // It is flushed when it is complete, and removed if it never is.
  db.pragma('synchronous = OFF');
  db.exec('BEGIN');
  createSchema(db);
  const log = wholeLogOn(db);
  const writer = new LineWriter(db);
  return {
    ...log,
    writeLines: async (lines) => writer.write(lines),
    async flush() {
      await writeMeta(log, COPIED_THROUGH, String(writer.lastPosition));
      db.exec('COMMIT');
    },
    async commit() {
      db.close();
      await moveFile(draft, path, { isNew: true });
    },
    close,
  };
}

class LineWriter {
  lastPosition = 0;
  readonly #insert: Database.Statement<unknown[]>;

  constructor(db: Database.Database) {
    this.#insert = db.prepare(
      `INSERT INTO events (position, chamber_id, account, event_id, line, signature, nodes, line_crc, nodes_crc)
       VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?, ?, ?, ?)`,
    );
  }

  write(lines: readonly WholeLine[]): void {
    for (const { stream, event_id, line, signature, nodes, line_crc, nodes_crc } of lines) {
      const names = typeof stream === 'number' ? [stream, null] : [null, stream];
      this.#insert.run(++this.lastPosition, ...names, event_id, line, signature, nodes, line_crc, nodes_crc);
    }
  }
}

function wholeLogOn(db: Database.Database): Omit<WholeLog, 'close'> {
  const transaction = transactionOn(db);
  return {
    ...transaction,
    survivesErrors: true,
    checkOwn: async (report) => checkFile(db, Number((await readMeta(transaction, COPIED_THROUGH)) ?? 0), report),
    lastAt: async () => readClock(db),
  };
}
