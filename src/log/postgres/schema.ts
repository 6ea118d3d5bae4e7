// The PostgreSQL schema. `events` is the source of truth and append-only, except for withheld lines; the rest is derived or personal. The
// schema is created and migrated in one transaction under a lock, so that nodes may start together.
import type { Client } from 'pg';
import { MOVED_TO, newLogId, requireNotMoved } from '../log-id.ts';
import {
  CALLBACK_SIGNATURES,
  CALLBACKS,
  CONTACTS,
  createDerivedTables,
  createTable,
  createWithheld,
  REGISTRATIONS,
  TILES,
} from '../sql/tables.ts';
import { OtherLog, UnusableDatabase } from './database-errors.ts';
import { POSTGRES } from './dialect.ts';
import { readLogId, readMeta, requireMayCreate, requirePrivileges, requireServer } from './requirements.ts';
import { begin } from './session.ts';

const SCHEMA_VERSION = 7;
/** The previous schema, without withheld lines and callbacks. */
const PREVIOUS_VERSION = 6;
/** Lets only one program at a time create the schema. The number is arbitrary but must be the same in every release. */
const LOCK = 'SELECT pg_advisory_xact_lock(4848270581)';

/** A log that has moved has this trigger. */
export const MOVED_TRIGGER = 'events_refuse_moved';

/**
 * The UPDATE trigger allows only the replacement of a line by its stub: line and checksum change, and the signature is removed or kept; the
 * stub has the leaf of the original line, if the row or the next event has this leaf; and the same transaction has inserted or rewritten the
 * event's unique row in `withheld`. A stub may change only in its member `withheld`. The trigger protects against mistakes of any program, but
 * the owner of the table can drop it.
 */
const APPEND_ONLY = `
CREATE FUNCTION require_stub() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  stub text := '"withheld":[{]"at":"[^"]*","key":"[^"]*","keyid":"[^"]*","leaf":"(0x[0-9a-f]{64})","log":"[^"]*","reason":"[^"]*","signature":"[^"]*"[}][}]$';
  before text := encode(OLD.line, 'escape');
  after text := encode(NEW.line, 'escape');
  leaf text := substring(after FROM stub);
BEGIN
  IF leaf IS NULL
    OR (NEW.stream, NEW.event_id, NEW.at, NEW.nodes, NEW.nodes_crc) IS DISTINCT FROM (OLD.stream, OLD.event_id, OLD.at, OLD.nodes, OLD.nodes_crc)
    OR coalesce(NEW.signature, OLD.signature) IS DISTINCT FROM OLD.signature
    OR (before ~ stub AND regexp_replace(before, stub, '') <> regexp_replace(after, stub, ''))
    OR leaf <> '0x' || encode(substr(OLD.nodes, 1, 32), 'hex')
    OR EXISTS (SELECT FROM events AS e WHERE e.stream = OLD.stream AND e.event_id = OLD.event_id + 1
      AND position(('"prev":"' || leaf || '"')::bytea IN e.line) = 0)
    OR NOT EXISTS (SELECT FROM withheld AS w WHERE w.stream = OLD.stream AND w.event_id = OLD.event_id
      AND w.xmin = pg_current_xact_id()::xid)
  THEN RAISE EXCEPTION 'events is append-only: no UPDATE'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER events_refuse_change BEFORE DELETE OR TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION require_stub();
`;

/** The tables that the previous schema lacks. */
const NEW_TABLES = [
  ...[CALLBACKS, CALLBACK_SIGNATURES].map((table) => createTable(POSTGRES, table)),
  createWithheld(POSTGRES),
].join('\n');

// A stream is a chamber id in decimal or an agent's DID. The two unique indexes on `events` resolve conflicts between nodes.
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
${APPEND_ONLY}
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
${NEW_TABLES}
CREATE TABLE checkpoints (log_id text PRIMARY KEY, size bigint NOT NULL, note text NOT NULL);
CREATE TABLE leases (name text PRIMARY KEY, holder text NOT NULL, ends_at timestamptz NOT NULL);
`;

/** Migrates the previous schema. A node of an earlier release rejects the database on its next connection. */
const MIGRATION = `
DROP TRIGGER events_refuse_change ON events;
${NEW_TABLES}
${APPEND_ONLY}
UPDATE meta SET value = '${SCHEMA_VERSION}' WHERE name = 'schema_version';
`;

/** Creates the schema in an empty database, or migrates the previous one. Throws a single-line Error if the server or database is unsuitable. */
export async function createIfEmpty(client: Client): Promise<void> {
  await requireServer(client);
  await begin(client);
  try {
    await client.query(LOCK);
    if (!(await hasLog(client, KNOWN_VERSIONS))) await create(client);
    else if ((await readVersion(client)) === PREVIOUS_VERSION) await client.query(MIGRATION);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
  await requirePrivileges(client);
}

/** Returns whether the database has a log. Changes nothing. Throws a single-line Error if a start would fail. */
export async function logExists(client: Client): Promise<boolean> {
  if (!(await hasLog(client, KNOWN_VERSIONS))) {
    try {
      await requireCreatable(client);
      return false;
    } catch (error) {
      // Another node may be creating the log: the names are visible before the version. The lock waits for the end of its transaction.
      await client.query(LOCK);
      if (!(await hasLog(client, KNOWN_VERSIONS))) throw error;
    }
  }
  await requirePrivileges(client);
  return true;
}

export async function isMigrationDue(client: Client): Promise<boolean> {
  return (await readVersion(client)) !== SCHEMA_VERSION;
}

/** Runs in the caller's transaction. Throws a single-line Error unless the database is empty. */
export async function createSchema(client: Client): Promise<void> {
  await client.query(LOCK);
  if (await hasLog(client).catch(() => true))
    throw new UnusableDatabase('it is not empty: name another database, or drop its tables');
  await create(client);
}

/** Throws a single-line Error unless the database has a log of this version. */
export async function requireLog(client: Client): Promise<void> {
  if (!(await hasLog(client))) throw new UnusableDatabase('it contains no log');
}

/** Throws a single-line Error unless a start on the database would open this log. */
export async function requireSameLog(client: Client, logId: string): Promise<void> {
  const found = await readLogId(client);
  if (found !== logId) throw new OtherLog(found, logId);
  await requireServer(client);
  requireVersion(await readVersion(client));
  requireNotMoved(await readMeta(client, MOVED_TO));
}

const KNOWN_VERSIONS = [PREVIOUS_VERSION, SCHEMA_VERSION];

async function readVersion(client: Client): Promise<number> {
  return Number(await readMeta(client, 'schema_version'));
}

function requireVersion(version: number, known: readonly number[] = [SCHEMA_VERSION]): void {
  if (known.includes(version)) return;
  throw new UnusableDatabase(`the database has schema ${version}, ${describeVersion(version)}`);
}

function describeVersion(version: number): string {
  if (version > SCHEMA_VERSION) return `newer than schema ${SCHEMA_VERSION} of this version`;
  return KNOWN_VERSIONS.includes(version) ? 'which the first start of this version migrates' : 'which no release wrote';
}

/**
 * Returns false for an empty database. Tables of extensions, which a provider may have installed, do not count. Throws a single-line Error if
 * the database has anything but a log of a known version.
 */
async function hasLog(client: Client, known?: readonly number[]): Promise<boolean> {
  const { rows } = await client.query<{ readonly name: string }>(EXISTING_TABLES);
  if (rows.length === 0) return false;
  const tables = new Set(rows.map(({ name }) => name));
  const isOurs = ['meta', 'events', 'registrations'].every((name) => tables.has(name));
  if (isOurs) await requirePrivileges(client, [['meta', 'SELECT']]);
  const version = Number(isOurs ? await readMeta(client, 'schema_version').catch(undefinedColumn) : undefined);
  if (!(version >= 1)) throw new UnusableDatabase('the database holds tables of another program');
  requireVersion(version, known);
  return true;
}

/** Another program's table may have the same name but different columns. */
function undefinedColumn(error: unknown): undefined {
  if ((error as { readonly code?: unknown }).code !== '42703') throw error;
}

/** Reads the system catalog, because information_schema lists only tables on which the role has privileges. */
const EXISTING_TABLES = `SELECT relname AS name FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT EXISTS (
    SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')`;

async function requireCreatable(client: Client): Promise<void> {
  await requireMayCreate(client);
  await requireFreeNames(client);
}

/** Types, indexes and sequences share a namespace with tables, and an extension may have its own tables. */
async function requireFreeNames(client: Client): Promise<void> {
  const names = [...SCHEMA.matchAll(/^CREATE (?:TABLE|UNIQUE INDEX|INDEX) (\w+)/gm)].map(([, name]) => name);
  const { rows } = await client.query<{ readonly name: string; readonly schema: string }>(NAME_TAKEN, [names]);
  const [taken] = rows;
  if (taken === undefined) return;
  const { name, schema } = taken;
  throw new UnusableDatabase(
    `another program or an extension uses the name ${name} in the schema ${schema}: name another database, or a separate schema with search_path`,
  );
}

const NAME_TAKEN = `SELECT quote_ident(name) AS name, quote_ident(current_schema()) AS schema FROM unnest($1::text[]) AS names (name)
  WHERE EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname = current_schema() AND relname = name)
    OR EXISTS (SELECT FROM pg_type JOIN pg_namespace ON pg_namespace.oid = typnamespace
      WHERE nspname = current_schema() AND typname = name) LIMIT 1`;

async function create(client: Client): Promise<void> {
  await requireCreatable(client);
  await client.query(SCHEMA);
  await client.query("INSERT INTO meta VALUES ('schema_version', $1), ('log_id', $2)", [
    String(SCHEMA_VERSION),
    newLogId(),
  ]);
}
