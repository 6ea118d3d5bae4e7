// What the database role must be allowed to do. A catalog shows all tables to every role, so a role without rights is told which one it
// lacks, and never takes the database for empty.
import type { Client } from 'pg';
import { DERIVED_TABLES } from '../sql/tables.ts';
import { MissingRight } from './database-errors.ts';

/** The tables by what a node does with their rows. */
const TABLES_BY_PRIVILEGES = {
  'SELECT,INSERT': ['events', 'places', 'registrations'],
  'SELECT,INSERT,UPDATE': ['meta', 'contacts', 'tiles', 'checkpoints', ...DERIVED_TABLES],
  'SELECT,INSERT,DELETE': ['unplaced_events'],
  'SELECT,INSERT,UPDATE,DELETE': ['snapshots', 'leases'],
};
const NEEDED = Object.entries(TABLES_BY_PRIVILEGES).flatMap(([privileges, tables]) =>
  tables.flatMap((table) => privileges.split(',').map((privilege) => [table, privilege] as const)),
);

const MISSING = `SELECT relname AS name, privilege, quote_ident(current_user) AS role, quote_ident(nspname) AS schema
  FROM unnest($1::text[], $2::text[]) AS needed (relname, privilege) JOIN pg_class USING (relname)
  JOIN pg_namespace ON pg_namespace.oid = relnamespace AND nspname = current_schema()
  WHERE NOT has_table_privilege(pg_class.oid, privilege) LIMIT 1`;

interface MissingRow {
  readonly name: string;
  readonly privilege: string;
  readonly role: string;
  readonly schema: string;
}

/** Throws MissingRight, an Error of one line that names the GRANT, unless the role may do all that a node does. */
export function requireRights(client: Client): Promise<void> {
  return requireEach(client, NEEDED);
}

/** The same for the table that says what the database holds. */
export function requireMayReadMeta(client: Client): Promise<void> {
  return requireEach(client, [['meta', 'SELECT']]);
}

async function requireEach(client: Client, needed: readonly (readonly [string, string])[]): Promise<void> {
  const values = [needed.map(([table]) => table), needed.map(([, privilege]) => privilege)];
  const { rows } = await client.query<MissingRow>(MISSING, values);
  const [missing] = rows;
  if (missing === undefined) return;
  const { name, privilege, role, schema } = missing;
  throw new MissingRight(
    `the role ${role} lacks ${privilege} on the table ${name}: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
  );
}

/** The same for the schema in which the first start creates the tables. */
export async function requireMayCreate(client: Client): Promise<void> {
  const { rows } = await client.query<{ readonly may: boolean; readonly role: string; readonly schema: string }>(
    `SELECT has_schema_privilege(current_schema(), 'CREATE') AS may, quote_ident(current_user) AS role,
       quote_ident(current_schema()) AS schema`,
  );
  const [{ may, role, schema }] = rows as [(typeof rows)[number]];
  if (may) return;
  throw new MissingRight(
    `the role ${role} may not create tables in the schema ${schema}: GRANT CREATE ON SCHEMA ${schema} TO ${role}`,
  );
}
