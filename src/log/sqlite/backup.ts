// Copies the database while the service runs. The copy is a separate log with a new logId, so that a service on it rejects cursors of the
// original, no matter how long the copy has become.
import { existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import Database from 'better-sqlite3';
import { draftOf, moveFile } from '../../files/durable-file.ts';
import { newLogId } from '../log-id.ts';
import { type RenewedId, renewLogId } from '../sql/maintenance.ts';
import { ERASURE_PENDING } from '../sql/withholding.ts';
import { transactionOn } from './connection.ts';
import { createPrivate, reasonOf, requireName } from './database-file.ts';
import { openReader } from './reader.ts';

export interface BackupSummary extends RenewedId {
  readonly events: number;
}

const PAGES_PER_STEP = 1_000;

/** Writes a consistent, durable copy to `target`, which must not exist, readable only by its owner. Writes nothing if it fails. */
export async function backupDatabase(path: string, target: string): Promise<BackupSummary> {
  if (existsSync(target)) throw new Error(`${target} already exists: name a new file`);
  requireName(target);
  const source = openReader(path);
  const partial = draftOf(resolve(target));
  try {
    createPrivate(partial);
    // The copy reads this transaction's snapshot. Otherwise every commit of the service would restart it.
    source.exec('BEGIN');
    await source.backup(partial, { progress: () => PAGES_PER_STEP });
    const summary = await makeNewLog(partial);
    await moveFile(partial, target, { isNew: true });
    return summary;
  } catch (error) {
    rmSync(partial, { force: true });
    throw new Error(`cannot back up ${path} to ${target}: ${reasonOf(error)}`, { cause: error });
  } finally {
    source.close();
  }
}

async function makeNewLog(path: string): Promise<BackupSummary> {
  const copy = new Database(path);
  try {
    // Until a service opens the copy, it is one file without a -wal.
    copy.pragma('journal_mode = DELETE');
    const events = copy.prepare<[], number>('SELECT count(*) FROM events').pluck().get() ?? 0;
    copy.exec('BEGIN');
    const renewed = await renewLogId(transactionOn(copy), newLogId());
    // Release 0.1.0 published no tree.
    if (hasTable(copy, 'tiles')) copy.exec('DELETE FROM tiles');
    const { changes } = copy.prepare('DELETE FROM meta WHERE name = ?').run(ERASURE_PENDING);
    copy.exec('COMMIT');
    // Free pages are copied too, and may still contain the bytes of withheld lines.
    if (changes > 0) copy.exec('VACUUM');
    return { ...renewed, events };
  } finally {
    copy.close();
  }
}

function hasTable(db: Database.Database, name: string): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined;
}
