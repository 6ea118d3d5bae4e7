// Facts that are kept with the log, and its clock, in an SQLite file.
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import { CLOCK_HIGH_WATER_MARK } from '../clock-reset.ts';
import { SqlMeta } from '../sql/meta.ts';
import type { Sql, SqlValue } from '../sql/sql.ts';
import { META, upsert } from '../sql/tables.ts';
import type { Writer } from './writer.ts';

/** The clock takes as much room as a large move after a failed write: its success shows that moves fit again. */
const PROBE_BYTES = 65_536;

const PERSIST = upsert(META, 'VALUES ($1, $2)');

interface Parts {
  readonly sql: Sql;
  readonly writer: Writer;
  readonly lastAt: Millis;
}

export class SqliteMeta extends SqlMeta {
  readonly #writer: Writer;

  constructor({ sql, writer, lastAt }: Parts) {
    super(sql, lastAt);
    this.#writer = writer;
  }

  get writeFailure(): ForumError | undefined {
    return this.#writer.failure;
  }

  protected write(text: string, values: readonly SqlValue[]): Promise<unknown> {
    return this.#writer.change([{ text, values }]);
  }

  protected async writeClock(at: Millis): Promise<void> {
    const value = String(at).padEnd(this.#writer.failure === undefined ? 0 : PROBE_BYTES);
    await this.#writer.write([{ text: PERSIST, values: [CLOCK_HIGH_WATER_MARK, value] }]);
  }
}
