// What a failed write means: nothing was written and a retry may succeed, or memory and disk may differ and the process must stop.
import Database from 'better-sqlite3';
import { ForumError } from '../vocabulary/errors.ts';

/** The store no longer holds what was written: the process must not go on. */
export class LogCorruption extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LogCorruption';
  }
}

const RETRY_AFTER_SECONDS = '1';
/** SQLite rolled the transaction back whole: a full disk, or another program that holds the write lock. */
const NOTHING_WRITTEN = /^SQLITE_(FULL|BUSY|LOCKED|NOMEM|READONLY)/;
const MEMORY_AND_DISK_DIFFER = /^SQLITE_(IOERR|CORRUPT|NOTADB|CANTOPEN|PROTOCOL|READONLY_DBMOVED)/;

/** Translates an error of SQLite: FORUM_ERR_UNAVAILABLE, LogCorruption, or the error itself when it is a defect of ours. */
export function toLogError(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError)) return error;
  if (MEMORY_AND_DISK_DIFFER.test(error.code)) {
    return new LogCorruption(`${error.code}: ${error.message}`, { cause: error });
  }
  if (NOTHING_WRITTEN.test(error.code)) {
    return new ForumError('FORUM_ERR_UNAVAILABLE', 'the log cannot be written at the moment, retry', {
      headers: { 'Retry-After': RETRY_AFTER_SECONDS },
      cause: error,
    });
  }
  return error;
}
