// A database file as programs other than the service read it, also while that runs.
import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { reasonOf, requireOneName } from './database-file.ts';
import { EARLIER_SCHEMAS } from './migration.ts';
import { requireOwnTables, SCHEMA_VERSION } from './schema.ts';

/** Opens the file read-only, also while the service runs; throws an Error of one line. */
export function openReader(path: string): Database.Database {
  let db: Database.Database | undefined;
  try {
    // Even a reader discards a write-ahead log that has lost its file.
    const file = requireOneName(path);
    if (!existsSync(file)) throw new Error('file not found');
    db = new Database(file, { readonly: true, fileMustExist: true });
    const version = db.pragma('user_version', { simple: true }) as number;
    if (version > 0) requireOwnTables(db);
    if (version !== SCHEMA_VERSION && !EARLIER_SCHEMAS.includes(version)) {
      throw new Error(`the file has schema ${version}, and this version reads schema ${SCHEMA_VERSION}`);
    }
    return db;
  } catch (error) {
    db?.close();
    throw new Error(`cannot read the database ${path}: ${reasonOf(error)}`, { cause: error });
  }
}

/** Undefined without a database, or with an unreadable one, which fsck reports. */
export function readLog<T>(databasePath: string, read: (db: Database.Database) => T): T | undefined {
  try {
    const db = openReader(databasePath);
    try {
      return read(db);
    } finally {
      db.close();
    }
  } catch {
    return undefined;
  }
}

export function readMeta(db: Database.Database, name: string): string | undefined {
  return db.prepare<[string], string>('SELECT value FROM meta WHERE name = ?').pluck().get(name);
}
