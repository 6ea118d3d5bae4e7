// Runs PgBouncer in front of a PostgreSQL server. The caller must end the process.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../src/demo/free-port.ts';
import { eventually } from './until.ts';

/** Returns whether PgBouncer is installed; tests that need it are skipped otherwise. */
export function hasPgBouncer(): boolean {
  return spawnSync('pgbouncer', ['--version']).error === undefined;
}

export interface PgBouncer {
  /** The URL of the same database through the pooler. */
  readonly url: string;
  /** Kills the process, and resolves when it has exited. */
  readonly kill: () => Promise<void>;
  /** Starts the process again, and resolves when it listens on the same port. */
  readonly start: () => Promise<void>;
}

interface PgBouncerOptions {
  readonly databaseUrl: string;
  readonly mode: 'session' | 'transaction';
  /** The folder for PgBouncer's settings. */
  readonly folder: string;
}

export async function startPgBouncer({ databaseUrl, mode, folder }: PgBouncerOptions): Promise<PgBouncer> {
  const { hostname, port, pathname, username, password } = new URL(databaseUrl);
  chmodSync(folder, 0o755);
  const [file, listenPort] = [join(folder, `${mode}.ini`), await freePort()];
  writeFileSync(
    file,
    `[databases]
${pathname.slice(1)} = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 20
server_login_retry = 1
`,
    { mode: 0o644 },
  );
  // PgBouncer refuses to run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  let child: ChildProcess;
  const start = async () => {
    child = spawn('pgbouncer', ['-q', ...user, file], { stdio: 'ignore' });
    await eventually(() => requireListening(listenPort), 10_000);
  };
  await start();
  return {
    url: `postgres://${username}@127.0.0.1:${listenPort}${pathname}`,
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    start,
  };
}

function requireListening(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve();
    }).once('error', reject);
  });
}
