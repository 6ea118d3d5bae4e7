// The time of a log in PostgreSQL, and its reset to the true one, while no node runs on it.
import type { Client } from 'pg';
import type { Millis } from '../../vocabulary/values.ts';
import { CLOCK_RESET, type ClockReset, parseReset, resetOf } from '../clock-reset.ts';
import { toStream } from './growth.ts';
import { CLOCK_HIGH_WATER_MARK, readMeta, requireLog } from './schema.ts';
import { openTransaction } from './transaction.ts';

/** The later of the newest event's `ts`, unless a reset was after it, and the persisted clock; 0 in an empty log. */
export async function readLastAt(client: Client): Promise<Millis> {
  const persisted = Number((await readMeta(client, CLOCK_HIGH_WATER_MARK)) ?? 0);
  const { from } = parseReset(await readMeta(client, CLOCK_RESET));
  // Only the newest rows: the index skips what lies before that.
  const { rows } = await client.query('SELECT max(at) AS at FROM events WHERE at > $1', [Math.max(persisted, from)]);
  return Math.max(persisted, Number(rows[0].at ?? 0));
}

/** By the database's clock. Throws an Error of one line if the log's time is not in the future, or a node runs. */
export async function resetPostgresClock(url: string): Promise<ClockReset> {
  const { client, close } = await openTransaction(url);
  try {
    await requireLog(client, url);
    await requireNoNode(client);
    const { rows } = await client.query('SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now');
    const now: Millis = rows[0].now;
    const ahead = await client.query<{ readonly stream: string; readonly until: Millis }>(
      'SELECT stream, max(at)::float8 AS until FROM events WHERE at > $1 GROUP BY stream ORDER BY until',
      [now],
    );
    const waiting = ahead.rows.map(({ stream, until }) => ({ stream: toStream(stream), until }));
    const reset = resetOf({ lastAt: await readLastAt(client), waiting }, now);
    await client.query(
      'INSERT INTO meta VALUES ($1, $2), ($3, $4) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
      [CLOCK_RESET, JSON.stringify(reset), CLOCK_HIGH_WATER_MARK, String(now)],
    );
    await client.query('COMMIT');
    return reset;
  } finally {
    await close();
  }
}

/** Of the nodes that run, one always holds the publisher's lease; it ends seconds after the last of them. */
async function requireNoNode(client: Client): Promise<void> {
  const { rows } = await client.query(
    "SELECT 1 FROM leases WHERE ends_at BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute'",
  );
  if (rows.length > 0) throw new Error('a node runs on the log, or did so some seconds ago: stop all nodes first');
}
