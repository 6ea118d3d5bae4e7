// Starts a PostgreSQL server for the tests of a project, or uses the one in TEST_DATABASE_URL.
import { once } from 'node:events';
import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../../src/demo/embedded-postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
  }
}

/** Much more than a run needs. */
const FREE_BYTES_MIN = 4 * 2 ** 30;

export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const { TEST_DATABASE_URL } = process.env;
  if (TEST_DATABASE_URL) {
    project.provide('postgresUrl', TEST_DATABASE_URL);
    return undefined;
  }
  const server = await startPostgres({ parent: folderInMemory() });
  project.provide('postgresUrl', server.url);
  return server.stop;
}

export interface PostgresServer {
  readonly url: string;
  readonly pid: () => number;
  /** Stops the server, and resolves when the process has exited. */
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** A folder in memory, because each test creates and drops a schema, which would flush files on a disk hundreds of times. */
function folderInMemory(): string {
  const shared = '/dev/shm';
  if (!existsSync(shared)) return tmpdir();
  const { bavail, bsize } = statfsSync(shared);
  return bavail * bsize < FREE_BYTES_MIN ? tmpdir() : shared;
}

interface PostgresOptions {
  readonly parent?: string;
  readonly flags?: readonly string[];
}

export async function startPostgres({ parent, flags = [] }: PostgresOptions = {}): Promise<PostgresServer> {
  const server = await startEmbeddedPostgres({
    ...(parent !== undefined && { parent }),
    flags: ['-c', 'max_connections=300', ...flags],
    handlesSignals: false,
  });
  const { child } = server;
  return {
    url: server.url,
    pid: () => child().pid as number,
    kill: async (signal) => {
      const exited = once(child(), 'exit');
      child().kill(signal);
      await exited;
    },
    restart: server.start,
    stop: server.stop,
  };
}
