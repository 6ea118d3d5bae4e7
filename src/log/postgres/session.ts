// A session at the server: its client, its statements, and its settings. Each connection sets them itself, because the defaults of server,
// database and role may differ, and a changed default reaches every session that has set none.
import { hash } from 'node:crypto';
import { isIP } from 'node:net';
import pg from 'pg';
import { detach } from '../../process/detach.ts';
import type { SqlValue } from '../sql/sql.ts';
import { NotWritable } from './database-errors.ts';

/** Every number of the log is an integer of at most 53 bits; the driver would return those of 64 bits as text. */
const INT8 = pg.types.builtins.INT8;

export function newClient(connectionString: string, limits: pg.ClientConfig): pg.Client {
  const client = new pg.Client({
    connectionString: withPlainMode(connectionString),
    keepAlive: true,
    application_name: 'chambers',
    ...limits,
  });
  client.setTypeParser(INT8, Number);
  verifyAddress(client);
  return client;
}

/** The driver treats these modes as verify-full, with a warning at each start. */
const VERIFYING_MODE = /([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/;

function withPlainMode(connectionString: string): string {
  if (new URL(connectionString).searchParams.get('uselibpqcompat') === 'true') return connectionString;
  return connectionString.replace(VERIFYING_MODE, '$1verify-full');
}

/** The driver names the server to TLS only if the host is a name; otherwise TLS would expect a certificate of `localhost`. */
function verifyAddress(client: pg.Client): void {
  // The types lack it; TLS takes the object as its options.
  const { ssl } = client as { readonly ssl?: boolean | { host?: string } };
  if (typeof ssl === 'object' && isIP(client.host) !== 0) ssl.host = client.host;
}

/** PostgreSQL truncates longer names at 63 bytes. */
const NAME_CHARS = 32;
/** By text. The texts are constants, so there are few. */
const names = new Map<string, string>();

/** The statement with a name, so that each session prepares it once. The purpose begins the name, for readers of the server's log. */
export function prepared(text: string, values: readonly SqlValue[] = [], purpose = 'query'): pg.QueryConfig {
  const name = names.get(text) ?? `${purpose} ${hash('sha256', text).slice(0, NAME_CHARS)}`;
  names.set(text, name);
  return { name, text, values: [...values] };
}

/** Waits for the disk and for the synchronous standbys; a server that does more keeps that. */
const DURABLE_LEVEL = `CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END`;

/**
 * No timeout: an append that the server cancels while it waits for its standby would become visible without it, and programs compute
 * within a transaction. READ COMMITTED: an append sees the commit of a competitor that it waited for. All digits of a number.
 */
const SETTINGS = `VALUES ('synchronous_commit', ${DURABLE_LEVEL}), ('default_transaction_isolation', 'read committed'),
  ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'), ('idle_session_timeout', '0'),
  ('idle_in_transaction_session_timeout', '0'), ('extra_float_digits', '1'), ('jit', 'off'), ('plan_cache_mode', $1)`;

/** Skips settings that the server's version lacks. */
const OPEN = `SELECT pg_backend_pid() AS backend, pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS is_read_only,
  (SELECT count(set_config(name, value, $2)) FROM (${SETTINGS}) AS needed (name, value) JOIN pg_settings USING (name)) AS set`;

export type PlanCacheMode = 'auto' | 'force_generic_plan';

/**
 * Prepares the session for the service, and returns its backend; throws NotWritable. `isTrial`: the settings end with the statement, so that
 * a session which turns out to be shared is unchanged.
 */
export async function openSession(client: pg.Client, planCacheMode: PlanCacheMode, isTrial = false): Promise<number> {
  const { rows } = await client.query<OpenedRow>(OPEN, [planCacheMode, isTrial]);
  const [{ backend, is_read_only: isReadOnly }] = rows as [OpenedRow];
  if (isReadOnly) throw new NotWritable();
  return backend;
}

interface OpenedRow {
  readonly backend: number;
  readonly is_read_only: boolean;
}

/** Begins a transaction that states its isolation and durability itself. */
export async function begin(client: pg.Client, isolation = 'READ COMMITTED'): Promise<void> {
  await client.query(`BEGIN ISOLATION LEVEL ${isolation};
    SELECT ${setLocally('synchronous_commit', DURABLE_LEVEL)}, ${setLocally('idle_in_transaction_session_timeout', "'0'")}`);
}

function setLocally(name: string, value: string): string {
  return `set_config('${name}', ${value}, true)`;
}

/**
 * For statements that are transactions of their own: `cte` and `evaluated`, which adds no row, make the commit wait for disk and standbys
 * whatever the session's setting. Another program on a shared session may have changed it.
 */
export const DURABLY = {
  cte: `durable AS MATERIALIZED (SELECT ${setLocally('synchronous_commit', DURABLE_LEVEL)} AS level)`,
  evaluated: 'UNION ALL SELECT NULL FROM durable WHERE level IS NULL',
} as const;

/**
 * Confirms, if the condition is true, all rows that the statement has read: it writes a message to the server's own log after them, and its
 * commit waits for the standbys. Without synchronous standbys it writes nothing: visible rows are on disk.
 */
export function confirmedIf(condition: string): string {
  return `CASE WHEN ${condition} AND current_setting('synchronous_standby_names') <> ''
    THEN pg_logical_emit_message(true, 'chambers', ${setLocally('synchronous_commit', DURABLE_LEVEL)}) END`;
}

/** For a statement whose loss costs nothing: its commit does not wait for the disk. */
export const NOT_DURABLY = setLocally('synchronous_commit', "'off'");

export async function backendOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}

/** A pooler may hand out its sessions in turn, and other programs use them in between. */
const ROUNDS = 8;

/**
 * Throws an Error of one line unless a connection keeps its session. In transaction mode a pooler gives each transaction another session, so
 * settings, prepared statements and LISTEN would end up in the sessions of other clients: moves could be lost after their response. Behind
 * any pooler two connections are compared, which must have one backend each.
 */
export async function requireOwnSession(open: () => Promise<pg.Client>): Promise<void> {
  const clients: pg.Client[] = [];
  try {
    const first = await open();
    clients.push(first);
    const own = await backendOf(first);
    // A server announces the backend to the client, a pooler makes it up. The types lack it.
    if (own === (first as { readonly processID?: number }).processID) return;
    const second = await open();
    clients.push(second);
    const other = await backendOf(second);
    for (let round = 0; round < ROUNDS; round++) {
      // The second one asks twice as often, so that sessions handed out in turn meet the other connection.
      const seen = [await backendOf(second), await backendOf(first), await backendOf(second)];
      if (own === other || seen.join() !== [other, own, other].join()) throw new Error(SHARED);
    }
  } finally {
    // The server may be silent: nothing waits for their end.
    for (const client of clients) detach(client.end(), () => {});
  }
}

const SHARED =
  'a pooler shares the server’s sessions among connections, as PgBouncer does in transaction mode: use its session mode or the server’s own port';
