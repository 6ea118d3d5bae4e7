// The metadata and the clock of a log in PostgreSQL.
import type { Client } from 'pg';
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import { CLOCK_HIGH_WATER_MARK, CLOCK_RESET, parseReset } from '../clock-reset.ts';
import { SqlMeta } from '../sql/meta.ts';
import type { Sql, SqlValue } from '../sql/sql.ts';
import type { DatabaseClock } from './database-clock.ts';
import { OtherLog } from './database-errors.ts';
import { readLogId, readMeta, sameLog } from './requirements.ts';
import { prepared } from './session.ts';
import { probeAppend, type Writes } from './writes.ts';

/** The later of the persisted clock and the newest event's `ts` since the last reset; 0 in an empty log. */
export async function readLastAt(client: Client): Promise<Millis> {
  const persisted = Number((await readMeta(client, CLOCK_HIGH_WATER_MARK)) ?? 0);
  const { from } = parseReset(await readMeta(client, CLOCK_RESET));
  // The condition lets the index skip all but the newest rows.
  const { rows } = await client.query('SELECT max(at) AS at FROM events WHERE at > $1', [Math.max(persisted, from)]);
  return Math.max(persisted, Number(rows[0].at ?? 0));
}

export async function readNow(client: Client): Promise<Millis> {
  const { rows } = await client.query('SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now');
  return rows[0].now;
}

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

  /** Uses the connection for appends, so that no read delays it and it fails when appends would. After a failure it also probes an append. */
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

/** `none` inserts nothing, but makes the server check the privilege, and run the trigger of a log that has moved. */
const PERSIST_CLOCK = `
WITH ${sameLog('$3')}, none AS (INSERT INTO events SELECT FROM events WHERE false)
INSERT INTO meta SELECT $1, $2 FROM same_log
ON CONFLICT (name) DO UPDATE SET value = greatest(meta.value::bigint, excluded.value::bigint)::text
RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time`;
