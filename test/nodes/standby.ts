// A primary and its synchronous standby, run with the programs of an installed PostgreSQL, because npm's package lacks pg_basebackup.

import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../../src/demo/free-port.ts';
import { killTree, signalTree } from '../kit/process-tree.ts';

const DEBIAN = '/usr/lib/postgresql';
const POLL_MS = 20;

/** Returns the folder of the newest installed programs; undefined if there are none. */
export function findPrograms(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((one, other) => Number(other) - Number(one)) : [];
  const folders = versions.map((version) => join(DEBIAN, version, 'bin'));
  return folders.find((folder) => existsSync(join(folder, 'pg_basebackup')));
}

export interface Pair {
  /** A URL with both hosts, as an operator would write it. */
  readonly url: string;
  /** Kills all processes of the primary and promotes the standby; resolves when the standby accepts writes. */
  readonly failOver: () => Promise<void>;
  readonly primaryUrl: string;
  /** Signals the standby: SIGSTOP takes it away, SIGCONT brings it back. */
  readonly signalStandby: (signal: 'SIGSTOP' | 'SIGCONT') => void;
  readonly stop: () => Promise<void>;
}

export async function startPair(programs: string): Promise<Pair> {
  const folder = mkdtempSync(join(tmpdir(), 'chambers-pair-'));
  const owner = ownerOf(folder);
  const [primaryPort, standbyPort] = [await freePort(), await freePort()];
  const run = (program: string, ...args: string[]) =>
    void execFileSync(join(programs, program), args, { ...owner, stdio: 'pipe' });
  const serve = (name: string, port: number, ...flags: string[]) =>
    startServer([join(programs, 'postgres'), '-D', join(folder, name), '-p', String(port), ...FLAGS, ...flags], owner);

  run('initdb', '-D', join(folder, 'primary'), '--auth=trust', '-U', 'postgres', '--encoding=UTF8', '--locale=C', '-N');
  const primary = await serve('primary', primaryPort, '-c', 'synchronous_standby_names=*');
  run('pg_basebackup', '-D', join(folder, 'standby'), '-R', '-N', '-c', 'fast', '-d', urlOf(primaryPort));
  const standby = await serve('standby', standbyPort);
  await until(primaryPort, "SELECT count(*) = 1 AS done FROM pg_stat_replication WHERE sync_state = 'sync'");
  return {
    url: `postgres://postgres@127.0.0.1:${primaryPort},127.0.0.1:${standbyPort}/postgres?target_session_attrs=read-write`,
    primaryUrl: urlOf(primaryPort),
    signalStandby: (signal) => signalTree(standby.pid as number, signal),
    failOver: async () => {
      killTree(primary.pid as number);
      await until(standbyPort, 'SELECT pg_promote() AS done');
    },
    stop: async () => {
      for (const { pid } of [primary, standby]) killTree(pid as number);
      await sleep(POLL_MS);
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

const FLAGS = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=300'].flatMap((setting) => [
  '-c',
  setting,
]);

/** Returns the user of the folder, because PostgreSQL refuses to run as root. */
function ownerOf(folder: string): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'])));
  chownSync(folder, uid as number, gid as number);
  return { uid: uid as number, gid: gid as number };
}

/**
 * Standard input is a pipe from this process: when this process ends in any way, the server stops and its parent folder is
 * removed.
 */
const WHILE_PARENT_LIVES = `
exec 3<&0
"$@" 3<&- &
server=$!
{ read -r _ <&3; kill -QUIT $server; } &
wait $server
kill $! 2> /dev/null
[ -e /proc/$PPID ] || rm -rf "$(dirname "$3")"`;

function startServer(command: readonly string[], options: SpawnOptions): Promise<ChildProcess> {
  const child = spawn('sh', ['-c', WHILE_PARENT_LIVES, 'sh', ...command], {
    ...options,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let output = '';
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`PostgreSQL did not start: ${output}`)));
    child.stderr?.on('data', (chunk) => {
      if (output.length < 10_000) output += chunk;
      if (/ready to accept (read-only )?connections/.test(output)) resolve(child);
    });
  });
}

function urlOf(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

/** Repeats the query until it returns `done`. */
async function until(port: number, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: urlOf(port) });
  await client.connect();
  while ((await client.query(sql)).rows[0]?.done !== true) await sleep(POLL_MS);
  await client.end();
}
