// Classifies failures of the store: either nothing was written and a retry may succeed (FORUM_ERR_UNAVAILABLE), or memory and disk may
// differ and the process must stop (LogCorruption).
import Database from 'better-sqlite3';
import { type ForumError, unavailable } from '../../vocabulary/errors.ts';
import { LogCorruption } from '../damage.ts';
import type { WriteFailure } from './transactions.ts';

export class Failures {
  readonly #onCorruption: (error: LogCorruption) => void;

  /** `onCorruption` is called before the caller gets the error. */
  constructor(onCorruption: (error: LogCorruption) => void) {
    this.#onCorruption = onCorruption;
  }

  /** Returns FORUM_ERR_UNAVAILABLE, LogCorruption, or the error itself if it is a bug in the service. */
  ofRead(error: unknown): unknown {
    if (!(error instanceof Database.SqliteError)) return error;
    const { code, message } = error;
    if (NOTHING_WRITTEN.test(code) || NO_ROOM.test(code)) return cannotBeWritten(error);
    return MEMORY_AND_DISK_DIFFER.test(code) ? this.corrupt(`${code}: ${message}`, error) : error;
  }

  ofWrite(failure: WriteFailure): unknown {
    const { kind, code, message, isRolledBack } = failure;
    if (kind === 'corruption') return this.corrupt(message);
    const error = kind === 'sqlite' ? new Database.SqliteError(message, code) : new Error(message);
    if (NO_ROOM.test(code) && !isRolledBack) return this.corrupt(`${code}: ${message}`, error);
    return this.ofRead(error);
  }

  corrupt(problem: string, cause?: unknown): LogCorruption {
    const error = new LogCorruption(problem, { cause });
    this.#onCorruption(error);
    return error;
  }
}

export function cannotBeWritten(cause: unknown): ForumError {
  return unavailable('the log cannot be written at the moment, retry', cause);
}

/** SQLite rolled the transaction back: the disk is full, or another program has the write lock. */
const NOTHING_WRITTEN = /^SQLITE_(FULL|BUSY|LOCKED|NOMEM|READONLY(?!_DBMOVED))/;
/** A user's quota, a limit on file sizes, a full disk when the -shm has to grow, or a failing disk. */
const NO_ROOM = /^SQLITE_IOERR_(WRITE|SHMSIZE)$/;
const MEMORY_AND_DISK_DIFFER = /^SQLITE_(IOERR|CORRUPT|NOTADB|CANTOPEN|PROTOCOL|READONLY_DBMOVED)/;
