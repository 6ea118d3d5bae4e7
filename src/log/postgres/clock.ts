// The latest time that a log in PostgreSQL has shown.

import type { Client } from 'pg';
import type { Millis } from '../../vocabulary/values.ts';
import { CLOCK_HIGH_WATER_MARK, CLOCK_RESET, parseReset } from '../clock-reset.ts';
import { readMeta } from './schema.ts';

/** The later of the newest event's `ts`, unless a reset was after it, and the persisted clock; 0 in an empty log. */
export async function readLastAt(client: Client): Promise<Millis> {
  const persisted = Number((await readMeta(client, CLOCK_HIGH_WATER_MARK)) ?? 0);
  const { from } = parseReset(await readMeta(client, CLOCK_RESET));
  // Only the newest rows: the index skips what lies before that.
  const { rows } = await client.query('SELECT max(at) AS at FROM events WHERE at > $1', [Math.max(persisted, from)]);
  return Math.max(persisted, Number(rows[0].at ?? 0));
}

export async function readNow(client: Client): Promise<Millis> {
  const { rows } = await client.query('SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now');
  return rows[0].now;
}
