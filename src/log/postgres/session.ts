// A session on the server: its client, statements and settings. Each connection sets its settings explicitly, because the defaults of server,
// database and role may differ, and a changed default applies to every session that has not set a value.
import { hash } from 'node:crypto';
import { isIP } from 'node:net';
import pg from 'pg';
import { detach } from '../../process/detach.ts';
import type { SqlValue } from '../sql/sql.ts';
import { NotWritable } from './database-errors.ts';

/** The driver would return 64-bit integers as text, but every number of the log has at most 53 bits. */
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

/** The driver treats these modes as verify-full, but warns at each start. */
const VERIFYING_MODE = /([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/;

function withPlainMode(connectionString: string): string {
  if (new URL(connectionString).searchParams.get('uselibpqcompat') === 'true') return connectionString;
  return connectionString.replace(VERIFYING_MODE, '$1verify-full');
}

/** The driver passes the host to TLS only if it is a name. For an IP address, TLS would expect a certificate of `localhost`. */
function verifyAddress(client: pg.Client): void {
  // The types lack `ssl`, which the driver passes to TLS as options.
  const { ssl } = client as { readonly ssl?: boolean | { host?: string } };
  if (typeof ssl === 'object' && isIP(client.host) !== 0) ssl.host = client.host;
}

/** PostgreSQL truncates longer names at 63 bytes. */
const NAME_CHARS = 32;
/** Statement names by text. Texts are constants, so there are few. */
const names = new Map<string, string>();

/** Names the statement, so that each session prepares it once. The name begins with the purpose, to help readers of the server's log. */
export function prepared(text: string, values: readonly SqlValue[] = [], purpose = 'query'): pg.QueryConfig {
  const name = names.get(text) ?? `${purpose} ${hash('sha256', text).slice(0, NAME_CHARS)}`;
  names.set(text, name);
  return { name, text, values: [...values] };
}

/** Commits wait for the disk and the synchronous standbys. A stricter setting of the server is kept. */
const DURABLE_LEVEL = `CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END`;

/**
 * There are no timeouts: an append that the server cancels while waiting for its standby would become visible without it, and programs may
 * compute for a long time within a transaction. With READ COMMITTED, an append sees the commit of a competitor for which it waited.
 * `extra_float_digits` returns all digits of a number.
 */
const SETTINGS = `VALUES ('synchronous_commit', ${DURABLE_LEVEL}), ('default_transaction_isolation', 'read committed'),
  ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'), ('idle_session_timeout', '0'),
  ('idle_in_transaction_session_timeout', '0'), ('extra_float_digits', '1'), ('jit', 'off'), ('plan_cache_mode', $1)`;

/** Skips settings that the server's version lacks. */
const OPEN = `SELECT pg_backend_pid() AS backend, pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS is_read_only,
  (SELECT count(set_config(name, value, $2)) FROM (${SETTINGS}) AS needed (name, value) JOIN pg_settings USING (name)) AS set`;

export type PlanCacheMode = 'auto' | 'force_generic_plan';

/**
 * Configures the session for the service, and returns the process id of its backend. Throws NotWritable. If `isTrial`, the settings end with
 * the statement, so that a session that turns out to be shared is unchanged.
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

/** Begins a transaction with explicit isolation and durability. */
export async function begin(client: pg.Client, isolation = 'READ COMMITTED'): Promise<void> {
  await client.query(`BEGIN ISOLATION LEVEL ${isolation};
    SELECT ${setLocally('synchronous_commit', DURABLE_LEVEL)}, ${setLocally('idle_in_transaction_session_timeout', "'0'")}`);
}

function setLocally(name: string, value: string): string {
  return `set_config('${name}', ${value}, true)`;
}

/**
 * Parts of a statement that is its own transaction. They make its commit wait for disk and standbys whatever the session's setting, which
 * another program on a shared session may have changed. `evaluated` adds no row.
 */
export const DURABLE_COMMIT = {
  cte: `durable AS MATERIALIZED (SELECT ${setLocally('synchronous_commit', DURABLE_LEVEL)} AS level)`,
  evaluated: 'UNION ALL SELECT NULL FROM durable WHERE level IS NULL',
} as const;

/**
 * Returns an expression that confirms all rows that the statement has read, if the condition is true: it writes a message to the server's WAL
 * after them, and the commit waits for the standbys. Without synchronous standbys it writes nothing, because visible rows are on disk.
 */
export function confirmedIf(condition: string): string {
  return `CASE WHEN ${condition} AND current_setting('synchronous_standby_names') <> ''
    THEN pg_logical_emit_message(true, 'chambers', ${setLocally('synchronous_commit', DURABLE_LEVEL)}) END`;
}

/** Makes the commit not wait for the disk, in a statement whose loss costs nothing. */
export const ASYNCHRONOUS_COMMIT = setLocally('synchronous_commit', "'off'");

export async function backendOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}

/** A pooler may assign its sessions round-robin, and other programs use them in between. */
const ROUNDS = 8;

/**
 * Throws a single-line Error unless each connection keeps its session. A pooler in transaction mode may run each transaction in a different
 * session, so settings, prepared statements and LISTEN would end up in the sessions of other clients, and acknowledged moves could be lost.
 * Behind any pooler, two connections are compared: each must keep a backend of its own.
 */
export async function requireOwnSession(open: () => Promise<pg.Client>): Promise<void> {
  const clients: pg.Client[] = [];
  try {
    const first = await open();
    clients.push(first);
    const own = await backendOf(first);
    // A server announces its process id to the client, but a pooler makes one up. The types lack `processID`.
    if (own === (first as { readonly processID?: number }).processID) return;
    const second = await open();
    clients.push(second);
    const other = await backendOf(second);
    for (let round = 0; round < ROUNDS; round++) {
      // The second connection asks twice as often, so that sessions assigned round-robin reach the other connection.
      const seen = [await backendOf(second), await backendOf(first), await backendOf(second)];
      if (own === other || seen.join() !== [other, own, other].join()) throw new Error(SHARED);
    }
  } finally {
    // The server may not respond, so nothing waits for the connections to end.
    for (const client of clients) detach(client.end(), () => {});
  }
}

const SHARED =
  'a pooler shares the server’s sessions among connections, as PgBouncer does in transaction mode: use its session mode or the server’s own port';
