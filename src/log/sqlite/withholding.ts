// Withholding in one SQLite file: the transaction, and the erasure of the bytes that remain in free pages and in the -wal. The transaction
// marks the erasure as pending, so that an interrupted erasure is repeated at the next start.
import { setTimeout as sleep } from 'node:timers/promises';
import { detach } from '../../process/detach.ts';
import type { RestatedStub } from '../sql/restated-stubs.ts';
import { META, upsert } from '../sql/tables.ts';
import { type WithholdPlan, type WithholdStatement, withholdStatements } from '../sql/withheld-rows.ts';
import { ERASURE_PENDING, SqlWithholding, type WithholdingParts } from '../sql/withholding.ts';
import type { Erasure } from '../withholding.ts';
import { SQLITE } from './connection.ts';
import { reasonOf } from './database-file.ts';
import { eventKey } from './withholding-guard.ts';
import { Conflict, type Writer } from './writer.ts';

const ERASE_RETRY_MS = 1_000;
/** The maximum pause, e.g. while the disk has no space for VACUUM. */
const ERASE_RETRY_MS_MAX = 60_000;

interface Parts extends WithholdingParts {
  readonly writer: Writer;
  /** The value of ERASURE_PENDING when the store was opened; always undefined for an in-memory store. */
  readonly pending: number | undefined;
  readonly isInMemory: boolean;
}

export class SqliteWithholding extends SqlWithholding {
  readonly #parts: Parts;
  readonly #closing = new AbortController();
  #pending: number | undefined;
  #problem: string | undefined;
  #isErasing = false;

  constructor(parts: Parts) {
    super(parts);
    this.#parts = parts;
    this.#pending = parts.pending;
    this.#eraseSoon();
  }

  get erasure(): Erasure {
    return { isPending: this.#pending !== undefined, problem: this.#problem };
  }

  protected async write(plan: WithholdPlan): Promise<boolean> {
    const { isInMemory } = this.#parts;
    const withheld = plan.streams.flatMap(({ stream, lines }) => lines.map(({ eventId }) => eventKey(stream, eventId)));
    const number = plan.after + withheld.length;
    const statements = withholdStatements(SQLITE, plan);
    const mark = { text: upsert(META, 'VALUES ($1, $2)'), values: [ERASURE_PENDING, String(number)] };
    if (!(await this.#change([...statements, ...(isInMemory ? [] : [mark])], withheld))) return false;
    if (!isInMemory) this.#pending = number;
    this.#eraseSoon();
    return true;
  }

  /** Erases nothing, because the replaced stubs hold no text. */
  protected writeRestated(stubs: readonly RestatedStub[], statements: readonly WithholdStatement[]): Promise<boolean> {
    return this.#change(
      statements,
      stubs.map(({ stream, eventId }) => eventKey(stream, eventId)),
    );
  }

  async #change(statements: readonly WithholdStatement[], withheld: readonly string[]): Promise<boolean> {
    try {
      await this.#parts.writer.change(statements, { withheld });
      return true;
    } catch (error) {
      if (error instanceof Conflict) return false;
      throw error;
    }
  }

  #eraseSoon(): void {
    if (this.#pending === undefined || this.#isErasing) return;
    this.#isErasing = true;
    detach(this.#erase());
  }

  async #erase(): Promise<void> {
    let pause = ERASE_RETRY_MS;
    while (this.#pending !== undefined && !this.#closing.signal.aborted) {
      try {
        await this.#eraseThrough(this.#pending);
        this.#problem = undefined;
        pause = ERASE_RETRY_MS;
      } catch (error) {
        this.#problem = reasonOf(error);
        await this.#wait(pause);
        pause = Math.min(2 * pause, ERASE_RETRY_MS_MAX);
      }
    }
    this.#isErasing = false;
  }

  async #eraseThrough(number: number): Promise<void> {
    const { writer } = this.#parts;
    await writer.erase('vacuum');
    while (!(await writer.erase('truncate'))) {
      this.#problem = 'another program is reading old pages: the bytes are still in the -wal';
      await this.#wait(ERASE_RETRY_MS);
      if (this.#closing.signal.aborted) return;
    }
    const isLast = 'DELETE FROM meta WHERE name = $1 AND value = $2';
    await writer.change([{ text: isLast, values: [ERASURE_PENDING, String(number)] }]);
    if (this.#pending === number) this.#pending = undefined;
  }

  async #wait(millis: number): Promise<void> {
    await sleep(millis, undefined, { ref: false, signal: this.#closing.signal }).catch(() => {});
  }

  /** Stops the erasure, which continues after the next start. */
  close(): void {
    this.#closing.abort();
  }
}
