// What a connection needs of its session at the server. It is set on each connection whatever the server, the database or the role has as
// its default, because a change of a default reaches sessions that have not set their own.
import type { Client } from 'pg';
import { NotWritable } from './database-errors.ts';

/** Waits for the disk and for the synchronous standbys; a server that does more keeps that. */
const DURABLE_LEVEL = `CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END`;

/**
 * No timeout: an append that the server cancels while it waits for its standby would become visible without it, and programs compute
 * within a transaction. READ COMMITTED: an append sees what a competitor that it waited for has committed. All digits of a number.
 */
const SETTINGS = `VALUES ('synchronous_commit', ${DURABLE_LEVEL}), ('default_transaction_isolation', 'read committed'),
  ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'), ('idle_session_timeout', '0'),
  ('idle_in_transaction_session_timeout', '0'), ('extra_float_digits', '1'), ('jit', 'off'), ('plan_cache_mode', $1)`;

/** Settings that the server's version does not have are left out. */
const OPEN = `SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS read_only,
  (SELECT count(set_config(name, value, $2)) FROM (${SETTINGS}) AS needed (name, value) JOIN pg_settings USING (name)) AS set`;

export type PlanCacheMode = 'auto' | 'force_generic_plan';

interface OpenedRow {
  readonly pid: number;
  readonly standby: boolean;
  readonly read_only: string;
}

/**
 * Prepares the session for the service; throws NotWritable. `isTrial`: the settings end with the statement, so that a session which turns
 * out to be shared is left as it was.
 */
export async function openSession(client: Client, planCacheMode: PlanCacheMode, isTrial = false): Promise<void> {
  const { rows } = await client.query<OpenedRow>(OPEN, [planCacheMode, isTrial]);
  const [{ standby, read_only: readOnly }] = rows as [OpenedRow];
  if (standby || readOnly === 'on') throw new NotWritable();
}

/** Begins a transaction that states its isolation and durability itself. */
export async function begin(client: Client, isolation = 'READ COMMITTED'): Promise<void> {
  await client.query(`BEGIN ISOLATION LEVEL ${isolation};
    SELECT ${setLocally('synchronous_commit', DURABLE_LEVEL)}, ${setLocally('idle_in_transaction_session_timeout', "'0'")}`);
}

function setLocally(name: string, value: string): string {
  return `set_config('${name}', ${value}, true)`;
}

/**
 * For statements that are transactions of their own: `cte` and `evaluated`, which adds no row, make the commit wait for disk and standbys
 * whatever the session has. Another program on a shared session may have set it.
 */
export const DURABLY = {
  cte: `durable AS MATERIALIZED (SELECT ${setLocally('synchronous_commit', DURABLE_LEVEL)} AS level)`,
  evaluated: 'UNION ALL SELECT NULL FROM durable WHERE level IS NULL',
} as const;

/**
 * What a read rests on is confirmed if the condition holds: a message, whose text is the level that it makes the commit wait for, is written
 * to the server's own log after everything that the read has seen. Without synchronous standbys nothing is written: what is visible is on disk.
 */
export function confirmedIf(condition: string): string {
  return `CASE WHEN ${condition} AND current_setting('synchronous_standby_names') <> ''
    THEN pg_logical_emit_message(true, 'chambers', ${setLocally('synchronous_commit', DURABLE_LEVEL)}) END`;
}

/** Evaluated in a statement whose loss costs nothing: its commit does not wait for the disk. */
export const NOT_DURABLY = setLocally('synchronous_commit', "'off'");

export async function backendOf(client: Client): Promise<number> {
  const { rows } = await client.query<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}
