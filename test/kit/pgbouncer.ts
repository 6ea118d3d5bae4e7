// PgBouncer in front of a PostgreSQL server, where it is installed.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../src/demo/free-port.ts';
import { atEnd, temporaryFolder } from './temporary.ts';
import { eventually } from './until.ts';

/** False where the program is missing: a test that needs it is skipped by name. */
export function hasPgBouncer(): boolean {
  return spawnSync('pgbouncer', ['--version']).error === undefined;
}

/** The URL of the same database through a pooler, which ends with the test. */
export async function throughPgBouncer(databaseUrl: string, mode: 'session' | 'transaction'): Promise<string> {
  const { hostname, port, pathname, username, password } = new URL(databaseUrl);
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const [file, listenPort] = [join(folder, 'pgbouncer.ini'), await freePort()];
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
  const child = spawn('pgbouncer', ['-q', ...user, file], { stdio: 'ignore' });
  atEnd(() => void child.kill('SIGKILL'));
  await eventually(() => listens(listenPort), 10_000);
  return `postgres://${username}@127.0.0.1:${listenPort}${pathname}`;
}

function listens(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve();
    }).once('error', reject);
  });
}
