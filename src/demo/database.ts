// The demo's PostgreSQL database: a new schema on the server at DATABASE_URL, or a new embedded server.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inaccessibleFolder, startEmbeddedPostgres } from './embedded-postgres.ts';

interface Database {
  readonly url: string;
  readonly close: () => Promise<void>;
}

export async function openDatabase(): Promise<Database> {
  const { DATABASE_URL: serverUrl } = process.env;
  if (serverUrl === undefined) return startServer();
  const schema = `chambers_demo_${randomBytes(6).toString('hex')}`;
  await execute(serverUrl, `CREATE SCHEMA ${schema}`);
  const separator = serverUrl.includes('?') ? '&' : '?';
  return {
    url: `${serverUrl}${separator}options=${encodeURIComponent(`-c search_path=${schema}`)}`,
    close: () => execute(serverUrl, `DROP SCHEMA ${schema} CASCADE`),
  };
}

async function execute(connectionString: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

async function startServer(): Promise<Database> {
  const inaccessible = inaccessibleFolder(import.meta.dirname);
  if (inaccessible !== undefined)
    throw new Error(`PostgreSQL does not run as root, and its own user can’t enter ${inaccessible}: set DATABASE_URL`);
  const { url, stop } = await startEmbeddedPostgres({ handlesSignals: true });
  return { url, close: stop };
}
