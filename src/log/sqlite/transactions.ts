// Runs packed statements as transactions of one connection, in the writer's thread; on the main thread for a database in memory.
import Database from 'better-sqlite3';
import { LogCorruption } from '../damage.ts';
import type { FileWatch } from './file-watch.ts';
import { unpack } from './packed.ts';
import { type NumberedStatement, prepareNumbered } from './statements.ts';

export interface WriteRequest {
  /** Texts of statements that follow those sent before. */
  readonly texts: readonly string[];
  readonly statements: ArrayBuffer;
}

/** Rows changed, by statement; or why nothing was written. */
export type WriteResponse = { readonly changes: Uint32Array } | { readonly failure: WriteFailure };

/** An error as it crosses threads. */
export interface WriteFailure {
  readonly kind: 'corruption' | 'unchanged' | 'sqlite' | 'other';
  /** SQLite's code. */
  readonly code: string;
  readonly message: string;
  /** Whether the file is as it was before the transaction. */
  readonly isRolledBack: boolean;
}

/** A statement that had to change a row changed none. */
export class NothingChanged extends Error {}

export class Transactions {
  readonly #db: Database.Database;
  readonly #watch: FileWatch | undefined;
  readonly #texts: string[] = [];
  /** By the number of their text. */
  readonly #prepared: NumberedStatement[] = [];
  readonly #run: (packed: ArrayBuffer) => Uint32Array;
  readonly #lastPosition: Database.Statement<[], number>;

  constructor(db: Database.Database, watch?: FileWatch) {
    this.#db = db;
    this.#watch = watch;
    this.#run = db.transaction(this.#runAll.bind(this)).immediate;
    this.#lastPosition = db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck();
  }

  /** Durable when it returns. Throws with nothing written, unless memory and disk may differ. */
  run({ texts, statements }: WriteRequest): Uint32Array {
    // Kept whatever fails, so that the numbers that follow stay right.
    this.#texts.push(...texts);
    // The check precedes any statement: reading beyond the end of a -shm that was truncated would end the process.
    this.#watch?.requireUnchanged();
    const before = this.#lastPosition.get();
    try {
      return this.#run(statements);
    } catch (error) {
      throw Object.assign(error as Error, { isRolledBack: this.#isAsBefore(before) });
    }
  }

  #runAll(packed: ArrayBuffer): Uint32Array {
    const changes: number[] = [];
    for (const { number, mustChange, values } of unpack(packed)) {
      this.#prepared[number] ??= prepareNumbered(this.#db, this.#texts[number] as string);
      const { statement, bind } = this.#prepared[number];
      const { changes: changed } = statement.run(...bind(values));
      if (mustChange && changed === 0) throw new NothingChanged('the log has changed since');
      changes.push(changed);
    }
    return Uint32Array.from(changes);
  }

  /** A commit that failed has left the transaction, or the driver has rolled it back; then the file can be read as it was. */
  #isAsBefore(lastPosition: number | undefined): boolean {
    try {
      return !this.#db.inTransaction && this.#lastPosition.get() === lastPosition;
    } catch {
      return false;
    }
  }
}

export function failureOf(error: unknown): WriteFailure {
  const { message, isRolledBack = false } = error as Error & { readonly isRolledBack?: boolean };
  const code = error instanceof Database.SqliteError ? error.code : '';
  return { kind: kindOf(error), code, message, isRolledBack };
}

function kindOf(error: unknown): WriteFailure['kind'] {
  if (error instanceof LogCorruption) return 'corruption';
  if (error instanceof NothingChanged) return 'unchanged';
  return error instanceof Database.SqliteError ? 'sqlite' : 'other';
}
