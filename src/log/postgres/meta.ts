// Facts that are kept with the log, and its clock, in PostgreSQL.
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import { CLOCK_HIGH_WATER_MARK } from '../clock-reset.ts';
import { SqlMeta } from '../sql/meta.ts';
import type { Sql, SqlValue } from '../sql/sql.ts';
import { probeAppend } from './append-probe.ts';
import type { DatabaseClock } from './database-clock.ts';
import { prepared } from './driver.ts';
import { readLogId, sameLog } from './log-identity.ts';
import { OtherLog } from './unusable-database.ts';
import type { Writes } from './writes.ts';

interface Parts {
  readonly logId: string;
  readonly sql: Sql;
  readonly writes: Writes;
  readonly lastAt: Millis;
  readonly clock: Pick<DatabaseClock, 'beginReading'>;
}

export class PostgresMeta extends SqlMeta {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    super(parts.sql, parts.lastAt);
    this.#parts = parts;
  }

  get writeFailure(): ForumError | undefined {
    return this.#parts.writes.failure;
  }

  protected write(text: string, values: readonly SqlValue[]): Promise<unknown> {
    return this.#parts.sql.query(text, values);
  }

  /** No read delays it, and what holds it up would hold up the appends. What refuses an append refuses it too; after a failed one, an append is tried. */
  protected async writeClock(at: Millis): Promise<void> {
    const { writes, logId, clock } = this.#parts;
    await writes.run(async (client) => {
      const endReading = clock.beginReading();
      const { rows } = await client.query(prepared(PERSIST_CLOCK, [CLOCK_HIGH_WATER_MARK, String(at), logId]));
      const [row] = rows as readonly { readonly time: Millis }[];
      if (row === undefined) throw new OtherLog(await readLogId(client), logId);
      endReading(row.time);
      if (writes.failure !== undefined) await probeAppend(client, at);
    });
  }
}

/** Inserts no event, for which the server checks the right to, and runs the trigger of a log that has moved. */
const PERSIST_CLOCK = `
WITH ${sameLog('$3')}, none AS (INSERT INTO events SELECT FROM events WHERE false)
INSERT INTO meta SELECT $1, $2 FROM same_log
ON CONFLICT (name) DO UPDATE SET value = greatest(meta.value::bigint, excluded.value::bigint)::text
RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time`;
