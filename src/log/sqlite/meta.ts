// The metadata and the clock of a log in an SQLite file.
import type { Database } from 'better-sqlite3';
import type { ForumError } from '../../vocabulary/errors.ts';
import { instantOf, type Millis } from '../../vocabulary/values.ts';
import { CLOCK_HIGH_WATER_MARK, CLOCK_RESET, parseReset } from '../clock-reset.ts';
import { SqlMeta } from '../sql/meta.ts';
import type { Sql, SqlValue } from '../sql/sql.ts';
import { META, upsert } from '../sql/tables.ts';
import { readMeta } from './schema.ts';
import type { Writer } from './writer.ts';

/** After a failed write, the clock is padded to the size of a large move: its success shows that moves fit again. */
const PROBE_BYTES = 65_536;

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
    await this.#writer.write([{ text: upsert(META, 'VALUES ($1, $2)'), values: [CLOCK_HIGH_WATER_MARK, value] }]);
  }
}

/** The last millisecond of a four-digit year. */
const TIME_MAX: Millis = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Returns the log's time, which does not go back across restarts: the later of the persisted clock and the newest event's `ts`, which does
 * not count if it precedes a reset; 0 in an empty log. Throws if either is not a time.
 */
export function readClock(db: Database): Millis {
  const query = 'SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM meta WHERE name = ?';
  const persisted = db.prepare<[string], number>(query).pluck().get(CLOCK_HIGH_WATER_MARK) ?? 0;
  if (persisted > TIME_MAX) throw new Error('the persisted clock is not a time: restore a backup');
  const newestAt = newestEventAt(db);
  const { from } = parseReset(readMeta(db, CLOCK_RESET));
  return Math.max(persisted, newestAt > from ? newestAt : 0);
}

function newestEventAt(db: Database): Millis {
  const newest = db.prepare<[], string>(
    `SELECT iif(json_valid(line), json_extract(line, '$.ts'), '') FROM events
     WHERE position = (SELECT max(position) FROM events)`,
  );
  const ts = newest.pluck().get();
  if (ts === undefined) return 0;
  const at = instantOf(ts ?? '');
  if (!(at <= TIME_MAX)) throw new Error('the newest event has no timestamp: chambers fsck reports the damage');
  return at;
}
