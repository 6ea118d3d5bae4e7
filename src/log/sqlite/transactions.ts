// Runs packed statements as transactions on one connection: in the writer thread, or in the main thread for a database in memory.
import Database from 'better-sqlite3';
import { LogCorruption } from '../damage.ts';
import { type NumberedStatement, prepareNumbered } from './connection.ts';
import type { FileWatch } from './file-watch.ts';
import { unpack } from './packed.ts';
import { WithholdingGuard } from './withholding-guard.ts';

export interface WriteRequest {
  /** The texts of statements that were not sent before. */
  readonly texts: readonly string[];
  readonly statements: ArrayBuffer;
  /** Nothing is written if the log has a later withholding than this one. */
  readonly withheldThrough?: number | undefined;
  /** The events whose lines the transaction may replace by stubs, as returned by eventKey. */
  readonly withheld?: readonly string[] | undefined;
}

/** Rewrites the database without the bytes of deleted rows, or moves its pages out of the write-ahead log. */
export type EraseRequest = 'vacuum' | 'truncate';

/** The number of rows that each statement changed, or the reason why nothing was written. */
export type WriteResponse = { readonly changes: Uint32Array } | { readonly failure: WriteFailure };

/** An error in a form that can be sent between threads. */
export interface WriteFailure {
  readonly kind: 'corruption' | 'unchanged' | 'sqlite' | 'other';
  /** SQLite's code. */
  readonly code: string;
  readonly message: string;
  /** Whether the file is the same as before the transaction. */
  readonly isRolledBack: boolean;
}

/** A statement changed fewer rows than required. */
export class NothingChanged extends Error {}

export class Transactions {
  readonly #db: Database.Database;
  readonly #watch: FileWatch | undefined;
  readonly #texts: string[] = [];
  /** Indexed by the number of the text. */
  readonly #prepared: NumberedStatement[] = [];
  readonly #run: (packed: ArrayBuffer) => Uint32Array;
  readonly #lastPosition: Database.Statement<[], number>;
  readonly #lastWithheld: Database.Statement<[], number>;
  readonly #guard: WithholdingGuard;
  #withheldThrough: number;

  constructor(db: Database.Database, watch?: FileWatch) {
    this.#db = db;
    this.#watch = watch;
    this.#run = db.transaction(this.#runAll.bind(this)).immediate;
    this.#lastPosition = db.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck();
    this.#lastWithheld = db.prepare<[], number>('SELECT coalesce(max(number), 0) FROM withheld').pluck();
    this.#guard = new WithholdingGuard(db);
    this.#withheldThrough = this.#lastWithheld.get() ?? 0;
  }

  /** The transaction is durable when this method returns. If it throws, nothing was written, unless memory and disk may differ. */
  run({ texts, statements, withheldThrough, withheld = [] }: WriteRequest): Uint32Array {
    // The texts are kept even if the transaction fails, because later requests rely on their numbers.
    this.#texts.push(...texts);
    // This check precedes any statement: reading beyond the end of a truncated -shm would kill the process.
    this.#watch?.requireUnchanged();
    if ((withheldThrough ?? this.#withheldThrough) < this.#withheldThrough) {
      throw Object.assign(new NothingChanged('a line has been withheld since'), { isRolledBack: true });
    }
    const before = this.#lastPosition.get();
    try {
      return this.#guard.during(withheld, () => this.#run(statements));
    } catch (error) {
      throw Object.assign(error as Error, { isRolledBack: this.#isAsBefore(before) });
    } finally {
      if (withheld.length > 0) this.#withheldThrough = this.#lastWithheld.get() ?? 0;
    }
  }

  /** Returns whether the request succeeded. A reader of old pages prevents the truncation of the write-ahead log. */
  erase(request: EraseRequest): boolean {
    this.#watch?.requireUnchanged();
    const before = this.#lastPosition.get();
    try {
      if (request === 'vacuum') this.#db.exec('VACUUM');
      return request === 'vacuum' || truncateWal(this.#db);
    } catch (error) {
      throw Object.assign(error as Error, { isRolledBack: this.#isAsBefore(before) });
    }
  }

  #runAll(packed: ArrayBuffer): Uint32Array {
    const changes: number[] = [];
    for (const { number, changesMin, values } of unpack(packed)) {
      this.#prepared[number] ??= prepareNumbered(this.#db, this.#texts[number] as string);
      const { statement, bind } = this.#prepared[number];
      const { changes: changed } = statement.run(...bind(values));
      if (changed < changesMin) throw new NothingChanged('the log has changed since');
      changes.push(changed);
    }
    return Uint32Array.from(changes);
  }

  /** Returns whether a failed transaction has ended and the last position is the same as before it. */
  #isAsBefore(lastPosition: number | undefined): boolean {
    try {
      return !this.#db.inTransaction && this.#lastPosition.get() === lastPosition;
    } catch {
      return false;
    }
  }
}

export function responseTo(request: WriteRequest | EraseRequest, transactions: Transactions): WriteResponse {
  try {
    if (typeof request !== 'string') return { changes: transactions.run(request) };
    return { changes: Uint32Array.of(Number(transactions.erase(request))) };
  } catch (error) {
    return { failure: failureOf(error) };
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

/**
 * Erases deleted bytes, which remain in their pages and in the -wal: VACUUM rewrites every page, and the checkpoint empties the -wal.
 * Returns false if the -wal still contains them because another program is reading old pages.
 */
export function eraseDeletedBytes(db: Database.Database): boolean {
  db.exec('VACUUM');
  return truncateWal(db);
}

function truncateWal(db: Database.Database): boolean {
  const [checkpoint] = db.pragma('wal_checkpoint(TRUNCATE)') as readonly { readonly busy: number }[];
  return checkpoint?.busy === 0;
}
