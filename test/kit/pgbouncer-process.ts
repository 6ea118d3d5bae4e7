// Runs PgBouncer in front of a PostgreSQL server. The caller ends the process.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../src/demo/free-port.ts';
import { eventually } from './until.ts';

/** Tests that need PgBouncer are skipped if it is not installed. */
export function hasPgBouncer(): boolean {
  return spawnSync('pgbouncer', ['--version']).error === undefined;
}

export interface PgBouncer {
  /** The same database through the pooler. */
  readonly url: string;
  /** Resolves when the process has exited after SIGKILL. */
  readonly kill: () => Promise<void>;
  /** Resolves when it listens on the same port again. */
  readonly start: () => Promise<void>;
}

interface PgBouncerOptions {
  readonly databaseUrl: string;
  readonly mode: 'session' | 'transaction';
  /** For its settings. */
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
  // It does not run as root.
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
