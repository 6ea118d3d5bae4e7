// A copy of the database, taken while the service runs. The copy is a separate log: it has a new logId, so that a service
// on the copy rejects cursors of the original, however far the copy has grown.
import { existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import { draftOf, moveFile } from '../../files/durable-file.ts';
import { COPIED_FROM } from '../found-log.ts';
import { newLogId, type Renewal } from '../log-id.ts';
import { MOVED_TO } from '../moved.ts';
import { createPrivate, openDatabaseFile, reasonOf, requireName } from './database-file.ts';
import { openReader, readMeta } from './reader.ts';

/** The logIds of a copy and of its original. */
export interface RenewedId {
  readonly logId: string;
  readonly copiedFrom: string;
}

export interface BackupSummary extends RenewedId {
  readonly events: number;
}

const PAGES_PER_STEP = 1_000;

/** Writes a consistent copy to `target`, which must not exist: whole, durable and readable by its owner alone, or not at all. */
export async function backupDatabase(path: string, target: string): Promise<BackupSummary> {
  if (existsSync(target)) throw new Error(`${target} exists already: name a new file`);
  requireName(target);
  const source = openReader(path);
  const partial = draftOf(resolve(target));
  try {
    createPrivate(partial);
    // Copies the snapshot of this transaction: without it every commit of the service would restart the copy.
    source.exec('BEGIN');
    await source.backup(partial, { progress: () => PAGES_PER_STEP });
    const summary = makeNewLog(partial);
    await moveFile(partial, target, { isNew: true });
    return summary;
  } catch (error) {
    rmSync(partial, { force: true });
    throw new Error(`cannot back up ${path} to ${target}: ${reasonOf(error)}`, { cause: error });
  } finally {
    source.close();
  }
}

function makeNewLog(path: string): BackupSummary {
  const copy = new Database(path);
  try {
    // One file, without a -wal until a service opens it.
    copy.pragma('journal_mode = DELETE');
    const events = copy.prepare<[], number>('SELECT count(*) FROM events').pluck().get() ?? 0;
    return { ...renewLogId(copy, { logId: newLogId() }), events };
  } finally {
    copy.close();
  }
}

/** Renews the id of a file that was restored by other means than a backup of ours, while no service runs on it. */
export function renewFile(path: string, renewal: Renewal): RenewedId {
  openReader(path).close();
  const file = openDatabaseFile(path);
  try {
    renewal.prepare?.();
    return renewLogId(file.db, renewal);
  } finally {
    file.close();
  }
}

/** A log that has moved is renewed too: under another id it may take events again. */
function renewLogId(db: Database.Database, { logId, former }: Renewal): RenewedId {
  const copiedFrom = readMeta(db, 'log_id') ?? '';
  const write = db.prepare('INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)');
  db.transaction(() => {
    write.run('log_id', logId);
    write.run(COPIED_FROM, copiedFrom);
    db.prepare('DELETE FROM meta WHERE name = ?').run(MOVED_TO);
    // The tree is published again, under the new name.
    db.exec('DELETE FROM tiles');
    if (former !== undefined) {
      const { logId: formerId, size, note } = former;
      db.prepare('INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)').run(formerId, size, note);
    }
  }).immediate();
  return { logId, copiedFrom };
}
