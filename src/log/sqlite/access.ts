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

  writeFailed(error: unknown): unknown {
    const failure = this.failed(error);
    if (failure instanceof ForumError) this.writeFailure = failure;
    return failure;
  }

  /** FORUM_ERR_UNAVAILABLE, LogCorruption, or the error itself if it is a defect of ours. */
  failed(error: unknown): unknown {
    const failure = toLogError(error);
    if (failure instanceof LogCorruption) this.#onCorruption(failure);
    return failure;
  }
}

/** SQLite rolled the whole transaction back: a full disk, or another program that holds the write lock. */
const NOTHING_WRITTEN = /^SQLITE_(FULL|BUSY|LOCKED|NOMEM|READONLY)/;
const MEMORY_AND_DISK_DIFFER = /^SQLITE_(IOERR|CORRUPT|NOTADB|CANTOPEN|PROTOCOL|READONLY_DBMOVED)/;

function toLogError(error: unknown): unknown {
  if (!(error instanceof Database.SqliteError)) return error;
  if (MEMORY_AND_DISK_DIFFER.test(error.code)) {
    return new LogCorruption(`${error.code}: ${error.message}`, { cause: error });
  }
  if (!NOTHING_WRITTEN.test(error.code)) return error;
  return unavailable('the log cannot be written at the moment, retry', error);
}
