// Databases on the PostgreSQL server of the test run. Each is a schema that is dropped at the end of the test.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { openPostgresStore, type PostgresStore, type PostgresStoreOptions } from '../../src/log/postgres/store.ts';
import { atEnd } from './temporary.ts';

/** Returns the URL of an empty database. */
export async function temporaryPostgres(serverUrl: string = inject('postgresUrl')): Promise<string> {
  const schema = `test_${randomBytes(6).toString('hex')}`;
  await execute(serverUrl, `CREATE SCHEMA ${schema}`);
  atEnd(async () => void (await execute(serverUrl, `DROP SCHEMA ${schema} CASCADE`).catch(() => {})));
  const url = new URL(serverUrl);
  url.searchParams.set('options', `-c search_path=${schema}`);
  return url.href;
}

/** Opens a store that is closed at the end of the test. */
export async function openStore(url: string, options: Partial<PostgresStoreOptions> = {}): Promise<PostgresStore> {
  const store = await openPostgresStore({ url, connectionsMax: 4, ...options });
  atEnd(() => store.close());
  return store;
}

/** Opens a connection of another program. It ends before the schema is dropped, so that its locks never block the clean-up. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  atEnd(() => client.end());
  return client;
}

/** Executes SQL on a connection of another program. */
export async function execute(url: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Returns the URL of an empty database, or of a copy of the named one, as after a restore. */
export async function ownDatabase(template = 'template0'): Promise<string> {
  const serverUrl = inject('postgresUrl');
  const name = `test_${randomBytes(6).toString('hex')}`;
  await execute(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} ENCODING UTF8`);
  atEnd(async () => void (await execute(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`).catch(() => {})));
  const url = new URL(serverUrl);
  url.pathname = name;
  return url.href;
}

/** Returns the URLs of an empty database for its owner and for a role that may only log in. */
export async function ownRole(): Promise<{ readonly owner: string; readonly role: string; readonly url: string }> {
  const owner = await ownDatabase();
  const role = `role_${randomBytes(6).toString('hex')}`;
  await execute(owner, `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  // Cleans up before the database with grants to the role is dropped.
  atEnd(async () => void (await execute(owner, `DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`).catch(() => {})));
  const url = new URL(owner);
  [url.username, url.password] = [role, 'secret'];
  return { owner, role, url: url.href };
}

/** Locks a table exclusively until the client ends. */
export function holdTable(url: string, table: string): Promise<pg.Client> {
  return hold(url, `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
}

/** Blocks the creation and migration of schemas in the database until the client ends. */
export function holdMigrations(url: string): Promise<pg.Client> {
  return hold(url, 'SELECT pg_advisory_xact_lock(4848270581)');
}

async function hold(url: string, lock: string): Promise<pg.Client> {
  const client = await connect(url);
  await client.query(`BEGIN; ${lock}`);
  return client;
}

/** Ends the sessions through which nodes wake each other. */
export async function endWakeUps(url: string): Promise<void> {
  const sessions = "query LIKE 'LISTEN%' OR query LIKE 'SELECT pg_notify%'";
  await execute(url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${sessions}`);
}

/** Returns the number of sessions that wait for a lock on the table. */
export async function waitersFor(url: string, table: string): Promise<number> {
  return (await execute(url, `SELECT FROM pg_locks WHERE relation = '${table}'::regclass AND NOT granted`)).length;
}

/** Returns the number of sessions that wait to create or migrate a schema in the database. */
export async function migrationWaiters(url: string): Promise<number> {
  return (await execute(url, `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND ${IN_DATABASE}`))
    .length;
}

const IN_DATABASE = 'database = (SELECT oid FROM pg_database WHERE datname = current_database())';
