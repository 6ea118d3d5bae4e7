// A log in an SQLite file, which a program reads or writes in one transaction.
import { existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import { draftOf, moveFile } from '../../files/durable-file.ts';
import { CLOCK_RESET } from '../clock-reset.ts';
import { type SqlTransaction, toStream } from '../sql/sql.ts';
import { createDerivedTables, DERIVED_TABLES, META, SNAPSHOTS, upsert } from '../sql/tables.ts';
import { type NewLog, readMeta, type WholeLine, type WholeLog, type WritableLog, writeMeta } from '../sql/whole-log.ts';
import { ERASURE_PENDING } from '../sql/withholding.ts';
import type { Fault } from '../stored-stream.ts';
import { SQLITE, transactionOn } from './connection.ts';
import {
  createPrivate,
  DATABASE_PAGE_BYTES,
  openDatabaseFile,
  requireCurrent,
  requireOneName,
} from './database-file.ts';
import { readClock } from './meta.ts';
import { openReader } from './reader.ts';
import { createSchema } from './schema.ts';
import { eraseDeletedBytes } from './transactions.ts';
import { WithholdingGuard } from './withholding-guard.ts';

/** `meta` key of the last position that was copied from another log, whose lines need not be in chronological order. */
const COPIED_THROUGH = 'copied_through';

/** Reads the file, even while a service runs. Throws a single-line Error. */
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

/** Takes the file's lock, as a service would, and SQLite's write lock. Throws a single-line Error. */
export function openSqliteLog(path: string): WritableLog {
  // The reader fails if the file is missing. Opening for writing would create it.
  openReader(path).close();
  const file = openDatabaseFile(path);
  const { db } = file;
  try {
    db.exec('BEGIN IMMEDIATE');
  } catch (error) {
    file.close();
    throw error;
  }
  const guard = new WithholdingGuard(db);
  return {
    ...wholeLogOn(db),
    now: async () => Date.now(),
    requireNoService: async () => {},
    blockAppends: async () => {},
    placeLines: async () => {},
    allowAppends: async () => {},
    async emptyDerivedTables() {
      db.exec('REINDEX');
      for (const table of [...DERIVED_TABLES, SNAPSHOTS.name]) db.exec(`DROP TABLE IF EXISTS ${table}`);
      db.exec(createDerivedTables(SQLITE));
    },
    allowStubs(stubs) {
      guard.allow(stubs);
      // If this program crashes, the next start of a service erases the bytes.
      db.prepare(upsert(META, 'VALUES (?, ?)')).run(ERASURE_PENDING, '0');
    },
    async commit() {
      db.exec('COMMIT');
    },
    async eraseBytes() {
      if (!eraseDeletedBytes(db))
        throw new Error(
          `another program is reading ${path}, and the bytes are still in its -wal: run the command again`,
        );
      db.prepare('DELETE FROM meta WHERE name = ?').run(ERASURE_PENDING);
      return [];
    },
    close: async () => file.close(),
  };
}

/** Writes a draft next to the path until the commit. Throws a single-line Error if the file exists. */
export function createSqliteLog(path: string): NewLog {
  if (existsSync(path)) throw new Error(`${path} already exists: name a new file`);
  requireOneName(path);
  const draft = draftOf(resolve(path));
  createPrivate(draft);
  const db = new Database(draft);
  const removeDraft = () => {
    db.close();
    for (const file of [draft, `${draft}-journal`]) rmSync(file, { force: true });
  };
  try {
    db.pragma(`page_size = ${DATABASE_PAGE_BYTES}`);
    // The draft is flushed to disk when it is complete, and otherwise removed.
    db.pragma('synchronous = OFF');
    db.exec('BEGIN');
    createSchema(db);
  } catch (error) {
    removeDraft();
    throw error;
  }
  const log = wholeLogOn(db);
  const insert = db.prepare(INSERT_LINE);
  let lastPosition = 0;
  return {
    ...log,
    async writeLines(lines) {
      for (const line of lines) insert.run(...valuesOf(line, ++lastPosition));
    },
    async flush() {
      await writeMeta(log, COPIED_THROUGH, String(lastPosition));
      db.exec('COMMIT');
    },
    async commit() {
      db.close();
      await moveFile(draft, path, { isNew: true });
    },
    close: async () => removeDraft(),
  };
}

const INSERT_LINE = `INSERT INTO events (position, chamber_id, account, event_id, line, signature, nodes, line_crc, nodes_crc)
  VALUES (?, ?, ?, ?, CAST(? AS TEXT), ?, ?, ?, ?)`;

function valuesOf(whole: WholeLine, position: number) {
  const { stream, event_id, line, signature, nodes, line_crc, nodes_crc } = whole;
  const names = typeof stream === 'number' ? [stream, null] : [null, stream];
  return [position, ...names, event_id, line, signature, nodes, line_crc, nodes_crc];
}

function wholeLogOn(db: Database.Database): Omit<WholeLog, 'close'> {
  const transaction = transactionOn(db);
  return {
    ...transaction,
    survivesErrors: true,
    async checkDatabase(report) {
      checkPages(db, report);
      const fault = firstOutOfOrder(db, await unorderedThrough(transaction));
      if (fault !== undefined) report(fault);
    },
    lastAt: async () => readClock(db),
  };
}

function checkPages(db: Database.Database, report: (fault: Fault) => void): void {
  const rows = db.pragma('integrity_check') as readonly { readonly integrity_check: string }[];
  for (const { integrity_check: problem } of rows) {
    if (problem === 'ok') continue;
    report({ position: null, stream: null, eventId: null, problem: `the file is damaged: ${problem.trim()}` });
  }
}

interface OrderedRow {
  readonly position: number;
  readonly stream: string | number;
  readonly event_id: number;
  readonly at: number | null;
}

/** Returns the last position at which a `ts` may be earlier than that of a preceding line. */
async function unorderedThrough(transaction: SqlTransaction): Promise<number> {
  // Each reset moves the log's time back, and only the last reset is stored.
  if ((await readMeta(transaction, CLOCK_RESET)) !== undefined) return Number.POSITIVE_INFINITY;
  return Number((await readMeta(transaction, COPIED_THROUGH)) ?? 0);
}

/** Returns the first line with a wrong position or a `ts` that goes back: one process wrote the lines one after another. */
function firstOutOfOrder(db: Database.Database, unordered: number): Fault | undefined {
  const query = `SELECT place AS position, stream, event_id, at FROM ${SQLITE.lines} ORDER BY place`;
  let expected = 1;
  let latest = 0;
  for (const { position, stream, event_id: eventId, at } of db.prepare<[], OrderedRow>(query).iterate()) {
    const event = { position, stream: toStream(stream), eventId };
    if (position !== expected) return { ...event, problem: `its position is ${position}, not ${expected}` };
    const isLater = at === null || at >= latest || position <= unordered;
    if (!isLater) return { ...event, problem: 'ts is earlier than that of an earlier event' };
    latest = at ?? latest;
    expected++;
  }
  return undefined;
}
