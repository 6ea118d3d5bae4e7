// One writer for each database: a lock on a small file beside it, which the system releases however the process ends.
// The database itself stays open to sqlite3 and backups.
import Database from 'better-sqlite3';
import { requireOnePlace } from './database-path.ts';

/** Takes the lock and returns its release; throws at once when another process holds it, by whatever path. */
export function lockWriter(databasePath: string): () => void {
  try {
    return takeLock(`${requireOnePlace(databasePath)}.lock`);
  } catch (error) {
    throw new Error(`cannot open the database ${databasePath}: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
}

function takeLock(path: string): () => void {
  const lock = openLock(path);
  try {
    lock.pragma('locking_mode = EXCLUSIVE');
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    const isHeld = error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
    throw isHeld ? new Error('another process is using it', { cause: error }) : error;
  }
  return () => {
    lock.close();
  };
}

function openLock(path: string): Database.Database {
  try {
    return new Database(path, { timeout: 0 });
  } catch (error) {
    throw new Error(`cannot open ${path}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}
