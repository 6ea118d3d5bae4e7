// A copy of the database, taken while the service runs. The copy is a separate log: it has a new logId, so that a service
// on the copy rejects cursors of the original, however far the copy has grown.
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { createPrivate, reasonOf } from './database-file.ts';
import { openReader, readMeta } from './stored-events.ts';

export interface BackupSummary {
  /** Of the copy. */
  readonly logId: string;
  /** The logId of the original. */
  readonly copiedFrom: string;
  readonly events: number;
}

const PAGES_PER_STEP = 1_000;

/** Writes a consistent copy to `target`, which must not exist: whole, durable and readable by its owner alone, or not at all. */
export async function backupDatabase(path: string, target: string): Promise<BackupSummary> {
  if (existsSync(target)) throw new Error(`${target} exists already: name a new file`);
  const source = openReader(path);
  const partial = `${target}.partial`;
  try {
    rmSync(partial, { force: true });
    createPrivate(partial);
    // Copies the snapshot of this transaction: without it every commit of the service would restart the copy.
    source.exec('BEGIN');
    const copiedFrom = readMeta(source, 'log_id') ?? '';
    await source.backup(partial, { progress: () => PAGES_PER_STEP });
    const summary = makeNewLog(partial, copiedFrom);
    // The file first, then the folder that names it.
    flush(partial);
    renameSync(partial, target);
    flush(dirname(target));
    return summary;
  } catch (error) {
    rmSync(partial, { force: true });
    throw new Error(`cannot back up ${path} to ${target}: ${reasonOf(error)}`, { cause: error });
  } finally {
    source.close();
  }
}

function makeNewLog(path: string, copiedFrom: string): BackupSummary {
  const copy = new Database(path);
  try {
    // One file, without a -wal until a service opens it.
    copy.pragma('journal_mode = DELETE');
    const logId = randomBytes(16).toString('hex');
    const write = copy.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)');
    copy.transaction(() => {
      write.run('log_id', logId);
      write.run('copied_from', copiedFrom);
    })();
    const events = copy.prepare<[], number>('SELECT count(*) FROM events').pluck().get() ?? 0;
    return { logId, copiedFrom, events };
  } finally {
    copy.close();
  }
}

function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
