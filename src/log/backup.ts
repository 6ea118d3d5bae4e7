// A copy of the database, taken while the service runs, that is a log of its own: it has a new logId, so that a cursor of
// the original is refused by a service on the copy, however far the copy has grown on.
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { openReader, readMeta } from './stored-events.ts';

export interface BackupSummary {
  /** Of the copy. */
  readonly logId: string;
  /** The log that it is a copy of. */
  readonly copiedFrom: string;
  readonly events: number;
}

const PAGES_PER_STEP = 1_000;

/** Writes a consistent copy to `target`, which must not exist; it is there whole, and on disk, or not at all. */
export async function backupDatabase(path: string, target: string): Promise<BackupSummary> {
  if (existsSync(target)) throw new Error(`${target} exists already: a backup is written to a new file`);
  const source = openReader(path);
  const partial = `${target}.partial`;
  try {
    rmSync(partial, { force: true });
    // The snapshot of this transaction is copied: without it every commit of the service would start the copy anew.
    source.exec('BEGIN');
    const copiedFrom = readMeta(source, 'log_id') ?? '';
    await source.backup(partial, { progress: () => PAGES_PER_STEP });
    const summary = renew(partial, copiedFrom);
    publish(partial, target);
    return summary;
  } catch (error) {
    rmSync(partial, { force: true });
    throw new Error(`cannot back up ${path} to ${target}: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  } finally {
    source.close();
  }
}

function renew(path: string, copiedFrom: string): BackupSummary {
  const copy = new Database(path);
  try {
    // One file without a WAL beside it, until a service opens it.
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

/** Durable under its name once this returns: the file first, then the folder that names it. */
function publish(partial: string, target: string): void {
  flush(partial);
  renameSync(partial, target);
  flush(dirname(target));
}

function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
