// A store in one SQLite file, with WAL and synchronous=FULL. Only one process writes, in a separate thread; its main thread reads.
import { LOG_ID } from '../../vocabulary/values.ts';
import { DamagedStreams, type LogCorruption, type StreamDamaged } from '../damage.ts';
import { MOVED_TO, requireNotMoved } from '../log-id.ts';
import { SignatureFilter } from '../signature-filter.ts';
import { SqlCallbacks } from '../sql/callbacks.ts';
import { Lists } from '../sql/lists.ts';
import { KEPT_TABLES, SNAPSHOTS, TABLES } from '../sql/tables.ts';
import { ERASURE_PENDING } from '../sql/withholding.ts';
import type { Store } from '../store.ts';
import { sqlOn } from './connection.ts';
import { cannotOpen, type DatabaseFile, openDatabaseFile } from './database-file.ts';
import { SqliteEventLog } from './event-log.ts';
import { Failures } from './failures.ts';
import { readClock, SqliteMeta } from './meta.ts';
import { SqlitePublishedTree } from './published-tree.ts';
import { readMeta } from './schema.ts';
import { SqliteWithholding } from './withholding.ts';
import { Writer } from './writer.ts';

export interface SqliteStoreOptions {
  /** The lowest id of a new chamber; 1 by default. */
  readonly chamberIdMin?: number;
  /** Called before any method rejects with the error: the process must stop. */
  readonly onCorruption?: (error: LogCorruption) => void;
  /** Called once for each damaged stream. */
  readonly onDamage?: (damage: StreamDamaged) => void;
}

/**
 * Opens or creates the store in `path`, or in memory for ':memory:'. Throws a single-line Error, including for a file that has to be
 * migrated first.
 */
export function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Store {
  const file = openDatabaseFile(path);
  try {
    return compose(file, options);
  } catch (error) {
    file.close();
    throw cannotOpen(path, error);
  }
}

function compose(file: DatabaseFile, options: SqliteStoreOptions): Store {
  const { chamberIdMin = 1, onCorruption = () => {}, onDamage } = options;
  const { db, location } = file;
  const logId = readMeta(db, 'log_id') ?? '';
  if (!LOG_ID.test(logId)) throw new Error('the log has no id of 32 hex digits: restore a backup');
  requireNotMoved(readMeta(db, MOVED_TO));
  const lastAt = readClock(db);
  requireTables(db);
  const seen = new SignatureFilter(secondAfterNewest(db));
  const failures = new Failures(onCorruption);
  const through = readLast(db);
  const pending = readMeta(db, ERASURE_PENDING);
  const writer = new Writer(file, failures);
  if (location !== undefined) db.pragma('query_only = ON');
  const sql = sqlOn(db, (error) => failures.ofRead(error));
  const damagedStreams = new DamagedStreams(onDamage);
  const log = new SqliteEventLog({ logId, sql, damagedStreams, seen, chamberIdMin, writer });
  const withholding = new SqliteWithholding({
    ...{ sql, log, damagedStreams, writer, through },
    pending: pending === undefined ? undefined : Number(pending),
    isInMemory: location === undefined,
  });
  return {
    log,
    withholding,
    tree: new SqlitePublishedTree({ logId, sql, damagedStreams }, writer),
    lists: new Lists(sql),
    callbacks: new SqlCallbacks(sql, async (text, values) => (await writer.change([{ text, values }]))[0] ?? 0),
    meta: new SqliteMeta({ sql, writer, lastAt }),
    nodes: undefined,
    async close() {
      withholding.close();
      // The writer thread closes the last connection, and only then the descriptor with which it watches the file.
      db.close();
      await writer.close();
      file.close();
    },
  };
}

/** Prepares a statement on each table, so that a missing table fails the start. Other statements are prepared at their first use. */
function requireTables(db: DatabaseFile['db']): void {
  const tables = [SNAPSHOTS, ...Object.values(TABLES), ...KEPT_TABLES];
  for (const { name } of tables) db.prepare(`SELECT 1 FROM ${name}`);
}

function readLast(db: DatabaseFile['db']): number {
  return db.prepare<[], number>('SELECT coalesce(max(number), 0) FROM withheld').pluck().get() ?? 0;
}

/** Returns the first second without signatures in the log. A key begins with its second, so the newest key is last in its index. */
function secondAfterNewest(db: DatabaseFile['db']): number {
  return Math.max(...['events', 'withheld'].map((table) => secondAfterNewestIn(db, table)));
}

function secondAfterNewestIn(db: DatabaseFile['db'], table: string): number {
  const query = `SELECT max(signature) FROM ${table} WHERE signature IS NOT NULL`;
  const newest = db.prepare<[], Buffer | null>(query).pluck().get();
  if (newest == null) return 0;
  return newest.length < BigUint64Array.BYTES_PER_ELEMENT
    ? Number.POSITIVE_INFINITY
    : Number(newest.readBigUInt64BE()) + 1;
}
