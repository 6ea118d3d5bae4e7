// Facts that are kept with the log, and its clock.
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { LogMeta } from '../store.ts';
import { probeAppend } from './append-probe.ts';
import type { Query } from './connections.ts';
import type { DatabaseClock } from './database-clock.ts';
import { readLogId, sameLog } from './log-identity.ts';
import { CLOCK_HIGH_WATER_MARK } from './schema.ts';
import { OtherLog } from './unusable-database.ts';
import type { Writes } from './writes.ts';

interface Parts {
  readonly logId: string;
  readonly query: Query;
  readonly writes: Writes;
  readonly lastAt: Millis;
  readonly clock: Pick<DatabaseClock, 'beginReading'>;
}

export class PostgresMeta implements LogMeta {
  readonly #parts: Parts;
  #lastAt: Millis;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#lastAt = parts.lastAt;
  }

  get lastAt(): Millis {
    return this.#lastAt;
  }

  get writeFailure(): ForumError | undefined {
    return this.#parts.writes.failure;
  }

  async recall(name: string): Promise<string | undefined> {
    const [row] = await this.#parts.query<{ readonly value: string }>(
      'recall',
      'SELECT value FROM meta WHERE name = $1',
      [name],
    );
    return row?.value;
  }

  async remember(name: string, value: string): Promise<void> {
    await this.#parts.query('remember', 'INSERT INTO meta VALUES ($1, $2) ON CONFLICT DO NOTHING', [name, value]);
  }

  /**
   * It takes its turn among the appends: no read delays it, and what holds it up would hold them up. What refuses an append refuses it too;
   * after a failed one, an append is tried.
   */
  async persistClock(at: Millis): Promise<void> {
    const { writes, logId, clock } = this.#parts;
    await writes.run(async (client) => {
      const values = [CLOCK_HIGH_WATER_MARK, String(at), logId];
      const endReading = clock.beginReading();
      const { rows } = await client.query<{ readonly time: Millis }>({
        name: 'persist clock',
        text: PERSIST_CLOCK,
        values,
      });
      const [row] = rows;
      if (row === undefined) throw new OtherLog(await readLogId(client), logId);
      endReading(row.time);
      if (writes.failure !== undefined) await probeAppend(client, at);
    });
    this.#lastAt = Math.max(this.#lastAt, at);
  }
}

/** Inserts no event, for which the server checks the right to, and runs the trigger of a log that has moved. */
const PERSIST_CLOCK = `
WITH ${sameLog('$3')}, none AS (INSERT INTO events SELECT FROM events WHERE false)
INSERT INTO meta SELECT $1, $2 FROM same_log
ON CONFLICT (name) DO UPDATE SET value = greatest(meta.value::bigint, excluded.value::bigint)::text
RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time`;
