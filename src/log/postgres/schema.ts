// The PostgreSQL schema: `events` is the source of truth and append-only; the rest is derived or personal. Migrations run in
// transactions under a lock, so that nodes may start together, and resume where one was killed.
import type { Client } from 'pg';
import { createDerivedTables } from '../derived-tables.ts';
import { newLogId } from '../log-id.ts';
import { describeDatabase } from './database-url.ts';
import { COLUMN_TYPES } from './derived-rows.ts';
import { PHASE_INDEXES } from './lists.ts';
import { requireMayCreate, requireMayReadMeta, requireMayUpgrade, requireRights } from './rights.ts';
import { begin } from './session.ts';
import { UnusableDatabase } from './unusable-database.ts';

const SCHEMA_VERSION = 6;
const SERVER_VERSION_MIN = 150_000;
/** Any number, the same in every release: one migration at a time in a database. */
const MIGRATION_LOCK = '4848270581';

/** A log that has moved has this trigger. */
export const MOVED_TRIGGER = 'events_refuse_moved';

export const CLOCK_HIGH_WATER_MARK = 'clock_high_water_mark';

/** published-tree.ts writes it. Entries are on level -1. */
const PUBLISHED_TREE = `
CREATE TABLE tiles (level bigint NOT NULL, tile bigint NOT NULL, hashes bytea NOT NULL, PRIMARY KEY (level, tile));
CREATE TABLE checkpoints (log_id text PRIMARY KEY, size bigint NOT NULL, note text NOT NULL);
`;

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

${createDerivedTables(COLUMN_TYPES)}
${PHASE_INDEXES}
CREATE INDEX ideas_by_creator ON ideas (creator_did);
CREATE INDEX members_open ON members (did, chamber_id) WHERE is_open;
CREATE TABLE snapshots (
  stream text COLLATE "C" PRIMARY KEY,
  event_id bigint NOT NULL,
  version bigint NOT NULL,
  leaf bytea NOT NULL,
  state text NOT NULL,
  crc bigint NOT NULL
);

CREATE TABLE registrations (
  signature_hash bytea PRIMARY KEY,
  did text COLLATE "C" NOT NULL,
  event_id bigint NOT NULL,
  covers_email boolean NOT NULL
);
CREATE TABLE contacts (did text COLLATE "C" PRIMARY KEY, operator_email bytea NOT NULL);
CREATE TABLE leases (name text PRIMARY KEY, holder text NOT NULL, ends_at timestamptz NOT NULL);
${PUBLISHED_TREE}`;

/** It had snapshots of chambers only. */
const SCHEMA_WITHOUT_ACCOUNTS = 3;
/** It gave places to the lines of chambers only, and had no published tree. */
const SCHEMA_WITH_CHAMBERS_PLACED = 4;
/** The lines of accounts get their places. */
const PLACING_ACCOUNTS = 5;
const SNAPSHOTS_OF_STREAMS = `
ALTER TABLE snapshots RENAME chamber_id TO stream;
ALTER TABLE snapshots ALTER stream TYPE text COLLATE "C" USING stream::text;
`;

const EARLIER_SCHEMAS: readonly number[] = [SCHEMA_WITHOUT_ACCOUNTS, SCHEMA_WITH_CHAMBERS_PLACED, PLACING_ACCOUNTS];

/** The table gets another name, so that nodes of an earlier release can't append lines that get no place. */
const UNPLACED_EVENTS = 'ALTER TABLE unplaced RENAME TO unplaced_events;';

const PLACED_AT_ONCE = 10_000;
/** The position where the placing of accounts continues. It is empty at first: no DID is before it, and every chamber is. */
const PLACED_THROUGH = 'placed_through';
const BEFORE_ACCOUNTS = [':', 0];

/** Places PLACED_AT_ONCE lines of accounts, after those of all chambers. Returns the last one. */
const PLACE_ACCOUNTS = `
WITH next AS MATERIALIZED (
  SELECT stream, event_id FROM events WHERE (stream, event_id) > ($1, $2) ORDER BY stream, event_id LIMIT ${PLACED_AT_ONCE}
), placed AS (
  INSERT INTO places SELECT (SELECT coalesce(max(place), 0) FROM places) + row_number() OVER (ORDER BY stream, event_id),
    stream, event_id FROM next
)
SELECT stream, event_id::float8 FROM next ORDER BY stream DESC, event_id DESC LIMIT 1`;

/** Creates the schema in an empty database; throws an Error of one line on a server or a database that can't hold a log. */
export async function migrate(client: Client): Promise<void> {
  await requireServer(client);
  for (let isDone = false; !isDone; ) isDone = await migrateOneStep(client);
  await requireRights(client);
}

/** One transaction; one that is not committed is repeated by the next start. Returns whether it was the last one. */
async function migrateOneStep(client: Client): Promise<boolean> {
  await begin(client);
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    const version = await readVersion(client);
    requireKnown(version);
    if (version === undefined) await create(client);
    else if (version === PLACING_ACCOUNTS) await placeAccounts(client);
    else if (version !== SCHEMA_VERSION) await upgrade(client, version);
    await client.query('COMMIT');
    return version === undefined || version === SCHEMA_VERSION;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** The version of the log, undefined in an empty database; throws an Error of one line if a start would end with it, and changes nothing. */
export async function findVersion(client: Client): Promise<number | undefined> {
  const version = await readVersion(client);
  requireKnown(version);
  if (version === undefined) await requireMayMake(client);
  else await requireRights(client);
  if (version !== undefined && isUpgradeDue(version)) await requireMayUpgrade(client);
  return version;
}

export function isUpgradeDue(version: number): boolean {
  return version !== SCHEMA_VERSION;
}

export async function readMeta(client: Client, name: string): Promise<string | undefined> {
  const { rows } = await client.query('SELECT value FROM meta WHERE name = $1', [name]);
  return rows[0]?.value;
}

/** Throws an Error of one line unless it is the schema of this version. */
export function requireVersion(version: string | undefined): void {
  const found = Number(version);
  requireKnown(found);
  if (found !== SCHEMA_VERSION) throw new UnusableDatabase(`the database has schema ${found}, which a start upgrades`);
}

function requireKnown(version: number | undefined): void {
  if (version === undefined || version === SCHEMA_VERSION || EARLIER_SCHEMAS.includes(version)) return;
  if (version < SCHEMA_VERSION)
    throw new UnusableDatabase(`the database has schema ${version}, which no release wrote`);
  throw new UnusableDatabase(`the database has schema ${version}, newer than schema ${SCHEMA_VERSION} of this version`);
}

/** Runs in the caller's transaction. Returns the schema's name; throws an Error of one line unless the database is empty. */
export async function createSchema(client: Client, url: string): Promise<string> {
  await client.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  const isEmpty = (await readVersion(client).catch(() => 0)) === undefined;
  if (!isEmpty)
    throw new UnusableDatabase(`${describeDatabase(url)} is not empty: name another database, or drop its tables`);
  await create(client);
  return schemaOf(client);
}

/** Returns the schema's name; throws an Error of one line unless a log of this version is there. */
export async function requireLog(client: Client, url: string): Promise<string> {
  const version = await readVersion(client);
  if (version === undefined) throw new UnusableDatabase(`${describeDatabase(url)} holds no log`);
  if (version === SCHEMA_VERSION) return schemaOf(client);
  const advice = version < SCHEMA_VERSION ? 'which the first start of this version renews' : 'of a newer version';
  throw new UnusableDatabase(`${describeDatabase(url)} has schema ${version}, ${advice}`);
}

async function schemaOf(client: Client): Promise<string> {
  const { rows } = await client.query('SELECT quote_ident(current_schema()) AS name');
  return rows[0].name;
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

async function upgrade(client: Client, version: number): Promise<void> {
  await requireMayUpgrade(client);
  if (version === SCHEMA_WITHOUT_ACCOUNTS) await client.query(SNAPSHOTS_OF_STREAMS);
  await client.query(UNPLACED_EVENTS + PUBLISHED_TREE);
  await writeVersion(client, PLACING_ACCOUNTS);
}

async function placeAccounts(client: Client): Promise<void> {
  const saved = await readMeta(client, PLACED_THROUGH);
  const { rows } = await client.query(PLACE_ACCOUNTS, saved === undefined ? BEFORE_ACCOUNTS : JSON.parse(saved));
  const [last] = rows;
  await client.query('DELETE FROM meta WHERE name = $1', [PLACED_THROUGH]);
  if (last === undefined) return writeVersion(client, SCHEMA_VERSION);
  const through = JSON.stringify([last.stream, last.event_id]);
  await client.query('INSERT INTO meta VALUES ($1, $2)', [PLACED_THROUGH, through]);
}

async function writeVersion(client: Client, version: number): Promise<void> {
  await client.query("UPDATE meta SET value = $1 WHERE name = 'schema_version'", [String(version)]);
}
