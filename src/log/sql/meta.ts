// Facts that are kept with the log, and its clock. A database brings what writes.
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { LogMeta } from '../store.ts';
import type { Sql, SqlValue } from './sql.ts';

const RECALL = 'SELECT value FROM meta WHERE name = $1';
const REMEMBER = 'INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING';

export abstract class SqlMeta implements LogMeta {
  readonly #sql: Sql;
  #lastAt: Millis;

  constructor(sql: Sql, lastAt: Millis) {
    this.#sql = sql;
    this.#lastAt = lastAt;
  }

  abstract get writeFailure(): ForumError | undefined;
  /** Writes what is no part of a move. */
  protected abstract write(text: string, values: readonly SqlValue[]): Promise<unknown>;
  /** Takes its turn among the appends, and fails where they would. */
  protected abstract writeClock(at: Millis): Promise<void>;

  get lastAt(): Millis {
    return this.#lastAt;
  }

  async recall(name: string): Promise<string | undefined> {
    const [row] = await this.#sql.query<{ readonly value: string }>(RECALL, [name]);
    return row?.value;
  }

  async remember(name: string, value: string): Promise<void> {
    await this.write(REMEMBER, [name, value]);
  }

  async persistClock(at: Millis): Promise<void> {
    await this.writeClock(at);
    this.#lastAt = Math.max(this.#lastAt, at);
  }
}
