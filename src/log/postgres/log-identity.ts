// The database that a node writes to is the one that it was started on. Each connection is checked before it is used, and each append, clock
// write and checkpoint in its own statement: a host of DATABASE_URL may hold another log, and a database may be restored or renewed
// under a running node.
import type { Client } from 'pg';
import { MOVED_TO, requireNotMoved } from '../moved.ts';
import { readMeta, requireKnown, requireServer } from './schema.ts';
import { OtherLog } from './unusable-database.ts';

/** Throws an Error of one line unless a start on the database would open the log. */
export async function requireSameLog(client: Client, logId: string): Promise<void> {
  const found = await readLogId(client);
  if (found !== logId) throw new OtherLog(found, logId);
  await requireServer(client);
  requireKnown(Number(await readMeta(client, 'schema_version')));
  requireNotMoved(await readMeta(client, MOVED_TO));
}

export async function readLogId(client: Client): Promise<string | undefined> {
  const { rows } = await client.query<{ readonly has: boolean }>("SELECT to_regclass('meta') IS NOT NULL AS has");
  return rows[0]?.has === true ? readMeta(client, 'log_id') : undefined;
}

/** A CTE with one row if the database holds the log whose id is the parameter. */
export function sameLog(parameter: string): string {
  return `same_log AS MATERIALIZED (SELECT FROM meta WHERE name = 'log_id' AND value = ${parameter})`;
}
