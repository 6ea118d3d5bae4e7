// The PostgreSQL schema: `events` is the source of truth and append-only; the rest is derived or personal. It is created in one
// transaction under a lock, so that nodes may start together.
import type { Client } from 'pg';
import { newLogId } from '../log-id.ts';
import { CONTACTS, createDerivedTables, createTable, REGISTRATIONS, TILES } from '../sql/tables.ts';
import { describeDatabase } from './database-url.ts';
import { POSTGRES } from './dialect.ts';
import { requireMayCreate, requireMayReadMeta, requireRights } from './rights.ts';
import { begin } from './session.ts';
import { UnusableDatabase } from './unusable-database.ts';

const SCHEMA_VERSION = 6;
const SERVER_VERSION_MIN = 150_000;
/** Any number, the same in every release: one program at a time creates a schema in a database. */
const LOCK = 'SELECT pg_advisory_xact_lock(4848270581)';

/** A log that has moved has this trigger. */
export const MOVED_TRIGGER = 'events_refuse_moved';

// A stream is a chamber's id in decimal or an agent's DID. The two unique indexes of `events` are what decides between nodes.
const SCHEMA = `
CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE events (
  stream text COLLATE "C" NOT NULL,
  event_id bigint NOT NULL,
  at bigint NOT NULL,
  line bytea NOT NULL,
  signature bytea,
  nodes bytea,
  line_crc bigint NOT NULL,
  nodes_crc bigint,
  PRIMARY KEY (stream, event_id)
);
CREATE UNIQUE INDEX events_by_signature ON events (signature) WHERE signature IS NOT NULL;
CREATE INDEX events_by_time ON events USING brin (at) WITH (autosummarize = on);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'events is append-only: no %', TG_OP; END $$;
CREATE TRIGGER events_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The order of all lines, written after the commits; until then an event is in unplaced_events. Every append writes there, and few
-- rows are there for long: so it has no index.
CREATE TABLE unplaced_events (stream text COLLATE "C" NOT NULL, event_id bigint NOT NULL);
CREATE TABLE places (
  place bigint PRIMARY KEY,
  stream text COLLATE "C" NOT NULL,
  event_id bigint NOT NULL,
  UNIQUE (stream, event_id)
);

${createDerivedTables(POSTGRES)}
${[REGISTRATIONS, CONTACTS, TILES].map((table) => createTable(POSTGRES, table)).join('\n')}
CREATE TABLE checkpoints (log_id text PRIMARY KEY, size bigint NOT NULL, note text NOT NULL);
CREATE TABLE leases (name text PRIMARY KEY, holder text NOT NULL, ends_at timestamptz NOT NULL);
`;

/** Creates the schema in an empty database; throws an Error of one line on a server or a database that can't hold a log. */
export async function createIfEmpty(client: Client): Promise<void> {
  await requireServer(client);
  await begin(client);
  try {
    await client.query(LOCK);
    const version = await readVersion(client);
    if (version === undefined) await create(client);
    else requireKnown(version);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
  await requireRights(client);
}

/** Whether a log is there; throws an Error of one line if a start would end with it, and changes nothing. */
export async function findLog(client: Client): Promise<boolean> {
  const version = await readVersion(client);
  if (version === undefined) return requireNoLog(client);
  requireKnown(version);
  await requireRights(client);
  return true;
}

/** Another node may be making the log meanwhile: its names are there before its version is seen, and the lock waits for its end. */
async function requireNoLog(client: Client): Promise<boolean> {
  try {
    await requireMayMake(client);
    return false;
  } catch (error) {
    await client.query(LOCK);
    if ((await readVersion(client)) === undefined) throw error;
    return findLog(client);
  }
}

export async function readMeta(client: Client, name: string): Promise<string | undefined> {
  const { rows } = await client.query('SELECT value FROM meta WHERE name = $1', [name]);
  return rows[0]?.value;
}

/** Throws an Error of one line unless it is the schema of this version. */
export function requireKnown(version: number): void {
  if (version === SCHEMA_VERSION) return;
  const which =
    version < SCHEMA_VERSION ? 'which no release wrote' : `newer than schema ${SCHEMA_VERSION} of this version`;
  throw new UnusableDatabase(`the database has schema ${version}, ${which}`);
}

/** Runs in the caller's transaction. Throws an Error of one line unless the database is empty. */
export async function createSchema(client: Client, url: string): Promise<void> {
  await client.query(LOCK);
  const isEmpty = (await readVersion(client).catch(() => 0)) === undefined;
  if (!isEmpty)
    throw new UnusableDatabase(`${describeDatabase(url)} is not empty: name another database, or drop its tables`);
  await create(client);
}

/** Throws an Error of one line unless a log of this version is there. */
export async function requireLog(client: Client, url: string): Promise<void> {
  const version = await readVersion(client);
  if (version === undefined) throw new UnusableDatabase(`${describeDatabase(url)} holds no log`);
  requireKnown(version);
}

/** Throws an Error of one line if the server, or the database, can't hold a log. Returns what it is. */
export async function requireServer(client: Client): Promise<string> {
  const { rows } = await client.query(`SELECT current_setting('server_version_num')::int AS version,
    current_setting('server_version') AS name, current_setting('fsync') AS fsync, current_schema() AS schema,
    current_setting('server_encoding') AS encoding, current_setting('transaction_read_only') AS read_only,
    quote_ident(current_user) AS role`);
  const { version, name, fsync, schema, encoding, read_only: readOnly, role } = rows[0];
  if (version < SERVER_VERSION_MIN)
    throw new UnusableDatabase(`the server is PostgreSQL ${name}, and 15 or later is needed`);
  if (fsync !== 'on')
    throw new UnusableDatabase('the server runs with fsync=off: it would lose moves that were answered');
  if (readOnly !== 'off') throw new UnusableDatabase('the database is read-only');
  if (encoding !== 'UTF8') throw new UnusableDatabase(`the database has the encoding ${encoding}, and UTF8 is needed`);
  if (schema === null) {
    const grant = `GRANT USAGE, CREATE ON SCHEMA … TO ${role}`;
    throw new UnusableDatabase(`no schema of the search_path exists, or the role ${role} may use none: ${grant}`);
  }
  return `PostgreSQL ${name}`;
}

/** Undefined in an empty database: one that has no table, or only those of extensions, which a provider may have installed. */
async function readVersion(client: Client): Promise<number | undefined> {
  const { rows } = await client.query<{ readonly name: string }>(TABLES_THERE);
  if (rows.length === 0) return undefined;
  const tables = new Set(rows.map(({ name }) => name));
  const isOurs = ['meta', 'events', 'registrations'].every((name) => tables.has(name));
  if (isOurs) await requireMayReadMeta(client);
  const version = Number(isOurs ? await readMeta(client, 'schema_version').catch(undefinedColumn) : undefined);
  if (version >= 1) return version;
  throw new UnusableDatabase('the database holds tables of another program');
}

/** Another program's table may have the name and not the columns. */
function undefinedColumn(error: unknown): undefined {
  if ((error as { readonly code?: unknown }).code !== '42703') throw error;
}

/** The catalog's: information_schema has only the tables that the role has rights on. */
const TABLES_THERE = `SELECT relname AS name FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT EXISTS (
    SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')`;

async function requireMayMake(client: Client): Promise<void> {
  await requireMayCreate(client);
  await requireFreeNames(client);
}

/** Types, indexes and sequences share the names of tables, and an extension may have tables of its own. */
async function requireFreeNames(client: Client): Promise<void> {
  const names = [...SCHEMA.matchAll(/^CREATE (?:TABLE|UNIQUE INDEX|INDEX) (\w+)/gm)].map(([, name]) => name);
  const { rows } = await client.query<{ readonly name: string; readonly schema: string }>(NAME_TAKEN, [names]);
  const [taken] = rows;
  if (taken === undefined) return;
  const { name, schema } = taken;
  throw new UnusableDatabase(
    `something of another program or an extension is named ${name} in the schema ${schema}: name another database, or a schema of its own by search_path`,
  );
}

const NAME_TAKEN = `SELECT quote_ident(name) AS name, quote_ident(current_schema()) AS schema FROM unnest($1::text[]) AS names (name)
  WHERE EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname = current_schema() AND relname = name)
    OR EXISTS (SELECT FROM pg_type JOIN pg_namespace ON pg_namespace.oid = typnamespace
      WHERE nspname = current_schema() AND typname = name) LIMIT 1`;

async function create(client: Client): Promise<void> {
  await requireMayMake(client);
  await client.query(SCHEMA);
  await client.query("INSERT INTO meta VALUES ('schema_version', $1), ('log_id', $2)", [
    String(SCHEMA_VERSION),
    newLogId(),
  ]);
}
