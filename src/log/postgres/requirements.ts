// A node's requirements for server, role and database. The node checks each connection before use, because a host of DATABASE_URL may have a
// different log, and a database may be restored or renewed while the node runs. Each append, clock write and checkpoint also checks the logId
// in its own statement.
import type { Client } from 'pg';
import { DERIVED_TABLES } from '../sql/tables.ts';
import { MissingPrivilege, UnusableDatabase } from './database-errors.ts';

const SERVER_VERSION_MIN = 150_000;

/** Returns the server's name and version. Throws a single-line Error if the server or the database is unsuitable for a log. */
export async function requireServer(client: Client): Promise<string> {
  const { rows } = await client.query(`SELECT current_setting('server_version_num')::int AS version,
    current_setting('server_version') AS name, current_setting('fsync') AS fsync, current_schema() AS schema,
    current_setting('server_encoding') AS encoding, current_setting('transaction_read_only') AS read_only,
    quote_ident(current_user) AS role`);
  const { version, name, fsync, schema, encoding, read_only: readOnly, role } = rows[0];
  if (version < SERVER_VERSION_MIN)
    throw new UnusableDatabase(`the server is PostgreSQL ${name}, but 15 or later is needed`);
  if (fsync !== 'on') throw new UnusableDatabase('the server runs with fsync=off: it would lose acknowledged moves');
  if (readOnly !== 'off') throw new UnusableDatabase('the database is read-only');
  if (encoding !== 'UTF8') throw new UnusableDatabase(`the database has the encoding ${encoding}, and UTF8 is needed`);
  if (schema === null) {
    const grant = `GRANT USAGE, CREATE ON SCHEMA … TO ${role}`;
    throw new UnusableDatabase(`no schema of the search_path exists, or the role ${role} may use none: ${grant}`);
  }
  return `PostgreSQL ${name}`;
}

export async function readMeta(client: Client, name: string): Promise<string | undefined> {
  const { rows } = await client.query('SELECT value FROM meta WHERE name = $1', [name]);
  return rows[0]?.value;
}

export async function readLogId(client: Client): Promise<string | undefined> {
  const { rows } = await client.query<{ readonly has: boolean }>("SELECT to_regclass('meta') IS NOT NULL AS has");
  return rows[0]?.has === true ? readMeta(client, 'log_id') : undefined;
}

/** Returns a CTE with one row if the database has the log with the logId in the parameter, and without rows otherwise. */
export function sameLog(parameter: string): string {
  return `same_log AS MATERIALIZED (SELECT FROM meta WHERE name = 'log_id' AND value = ${parameter})`;
}

type Privilege = readonly [table: string, privilege: string];

/** The tables on which a node needs these privileges. */
const TABLES_BY_PRIVILEGES = {
  'SELECT,INSERT': ['places', 'registrations'],
  'SELECT,INSERT,UPDATE': ['events', 'withheld', 'meta', 'contacts', 'tiles', 'checkpoints', ...DERIVED_TABLES],
  'SELECT,INSERT,DELETE': ['unplaced_events'],
  'SELECT,INSERT,UPDATE,DELETE': ['snapshots', 'leases', 'callbacks', 'callback_signatures'],
};
const NODE_PRIVILEGES = Object.entries(TABLES_BY_PRIVILEGES).flatMap(([privileges, tables]) =>
  tables.flatMap((table) => privileges.split(',').map((privilege): Privilege => [table, privilege])),
);

/** Reads the catalog, which shows all tables to every role, so that a role without privileges never mistakes the database for empty. */
const MISSING = `SELECT relname AS name, privilege, quote_ident(current_user) AS role, quote_ident(nspname) AS schema
  FROM unnest($1::text[], $2::text[]) AS needed (relname, privilege) JOIN pg_class USING (relname)
  JOIN pg_namespace ON pg_namespace.oid = relnamespace AND nspname = current_schema()
  WHERE NOT has_table_privilege(pg_class.oid, privilege) LIMIT 1`;

/** Throws MissingPrivilege, a single-line Error that names the GRANT, unless the role has each privilege; by default those of a node. */
export async function requirePrivileges(client: Client, needed: readonly Privilege[] = NODE_PRIVILEGES): Promise<void> {
  const values = [needed.map(([table]) => table), needed.map(([, privilege]) => privilege)];
  const { rows } = await client.query<Record<'name' | 'privilege' | 'role' | 'schema', string>>(MISSING, values);
  const [missing] = rows;
  if (missing === undefined) return;
  const { name, privilege, role, schema } = missing;
  throw new MissingPrivilege(
    `the role ${role} lacks ${privilege} on the table ${name}: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
  );
}

/** Throws MissingPrivilege unless the role may create tables in the current schema, as the first start does. */
export async function requireMayCreate(client: Client): Promise<void> {
  const { rows } = await client.query<{ readonly may: boolean; readonly role: string; readonly schema: string }>(
    `SELECT has_schema_privilege(current_schema(), 'CREATE') AS may, quote_ident(current_user) AS role,
       quote_ident(current_schema()) AS schema`,
  );
  const [{ may, role, schema }] = rows as [(typeof rows)[number]];
  if (may) return;
  throw new MissingPrivilege(
    `the role ${role} may not create tables in the schema ${schema}: GRANT CREATE ON SCHEMA ${schema} TO ${role}`,
  );
}
