// Runs what reads and writes the database. Every failure of the store is one of two: nothing was written and a retry may succeed
// (FORUM_ERR_UNAVAILABLE), or memory and disk may differ and the process must stop (LogCorruption).
import Database from 'better-sqlite3';
import { ForumError, unavailable } from '../../vocabulary/errors.ts';
import { LogCorruption } from '../damage.ts';
import type { DatabaseFile } from './database-file.ts';

export class Access {
  readonly file: DatabaseFile;
  /** The error of the latest write; undefined if it succeeded. */
  writeFailure: ForumError | undefined;
  readonly #onCorruption: (error: LogCorruption) => void;

  /** `onCorruption` is called before the caller gets the error. */
  constructor(file: DatabaseFile, onCorruption: (error: LogCorruption) => void) {
    this.file = file;
    this.#onCorruption = onCorruption;
  }

  async read<Result>(use: () => Result): Promise<Result> {
    try {
      return use();
    } catch (error) {
      throw this.failed(error);
    }
  }

  /** Changes what can be made again: its failure says nothing about moves. */
  change<Result>(use: () => Result): Promise<Result> {
    return this.read(() => {
      this.file.requireUnchanged?.();
      return use();
    });
  }

  /** Throws what `failed` returns, and remembers it as the failure of a write. */
  write<Result>(use: () => Result): Result {
    try {
      this.file.requireUnchanged?.();
      const result = use();
      this.writeFailure = undefined;
      return result;
    } catch (error) {
      throw this.writeFailed(error);
    }
  }

  /** Every failure counts, those of our own defects too. */
  writeFailed(error: unknown, isAsBefore?: () => boolean): unknown {
    const failure = this.failed(error, isAsBefore);
    this.writeFailure = failure instanceof ForumError ? failure : cannotBeWritten(failure);
    return failure;
  }

  /**
   * FORUM_ERR_UNAVAILABLE, LogCorruption, or the error itself if it is a defect of ours. `isAsBefore` reads whether the file holds what
   * memory has; without it, what the failed transaction wrote may be written again.
   */
  failed(error: unknown, isAsBefore: () => boolean = () => true): unknown {
    const failure = this.#toLogError(error, isAsBefore);
    if (failure instanceof LogCorruption) this.#onCorruption(failure);
    return failure;
  }

  #toLogError(error: unknown, isAsBefore: () => boolean): unknown {
    if (!(error instanceof Database.SqliteError)) return error;
    const { code, message } = error;
    if (NOTHING_WRITTEN.test(code)) return cannotBeWritten(error);
    if (NO_ROOM.test(code) && this.#isRolledBack(isAsBefore)) return cannotBeWritten(error);
    return MEMORY_AND_DISK_DIFFER.test(code) ? new LogCorruption(`${code}: ${message}`, { cause: error }) : error;
  }

  /** A commit that failed has left the transaction, or the driver has rolled it back; then the file can be read as it was. */
  #isRolledBack(isAsBefore: () => boolean): boolean {
    try {
      return !this.file.db.inTransaction && isAsBefore();
    } catch {
      return false;
    }
  }
}

function cannotBeWritten(cause: unknown): ForumError {
  return unavailable('the log cannot be written at the moment, retry', cause);
}

/** SQLite rolled the whole transaction back: a full disk, or another program that holds the write lock. */
const NOTHING_WRITTEN = /^SQLITE_(FULL|BUSY|LOCKED|NOMEM|READONLY(?!_DBMOVED))/;
/** A user's quota, a limit on the size of files, or a full disk when the -shm has to grow; but a failing disk, too. */
const NO_ROOM = /^SQLITE_IOERR_(WRITE|SHMSIZE)$/;
const MEMORY_AND_DISK_DIFFER = /^SQLITE_(IOERR|CORRUPT|NOTADB|CANTOPEN|PROTOCOL|READONLY_DBMOVED)/;
