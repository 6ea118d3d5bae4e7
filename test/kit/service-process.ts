// Runs the service in a process of its own with a database file; the test kills or stops it.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { findLine } from '../../src/process/child-output.ts';
import { MAIN, ROOT } from './programs.ts';
import { atEnd } from './temporary.ts';

/** The service's PUBLIC_URL, which keeps signatures valid when its port changes. */
export const PUBLIC_URL = 'http://service.test';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServiceProcess {
  readonly url: string;
  readonly pid: number;
  readonly stderr: Readable;
  kill(signal: NodeJS.Signals): Promise<Exit>;
  /** Resolves when the process has exited for any reason. */
  readonly exited: Promise<Exit>;
}

type Service = ChildProcessByStdio<null, Readable, Readable>;

/** Starts the service; `wrapper` is a program, with its arguments, that runs node. */
export async function runService(
  settings: Readonly<Record<string, string>>,
  wrapper: readonly string[] = [],
): Promise<{ readonly child: Service; readonly exited: Promise<Exit> }> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const [program = process.execPath, ...before] = [...wrapper, process.execPath];
  const child = spawn(program, [...before, MAIN], {
    cwd: ROOT,
    env: { PATH, NODE_COMPILE_CACHE, PORT: '0', CHAIN: 'none', PUBLIC_URL, LOG_LEVEL: 'warn', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const texts = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => {
    texts.stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    texts.stderr += chunk;
  });
  const exited = once(child, 'close').then(([code, signal]): Exit => {
    return { code, signal, ...texts };
  });
  atEnd(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return { child, exited };
}

/** Resolves when the service listens; rejects with its error output if it exits first. */
export async function startProcess(
  databasePath: string,
  settings: Readonly<Record<string, string>> = {},
  wrapper: readonly string[] = [],
): Promise<ServiceProcess> {
  const { child, exited } = await runService({ DATABASE_PATH: databasePath, ...settings }, wrapper);
  const [, url = ''] = await findLine(child.stdout, /^listening on (\S+)$/).catch(async () => failed(await exited));
  const kill = (signal: NodeJS.Signals) => {
    child.kill(signal);
    return exited;
  };
  return { url, pid: child.pid as number, stderr: child.stderr, kill, exited };
}

/** A user other than root, who may write everywhere. */
export const OTHER_USER = 65_534;

/** Starts the built service as the unit and the image do: with their script, in the package's folder, and not as root. */
export async function startShipped(folder: string, env: Readonly<Record<string, string>>): Promise<{ url: string }> {
  const asUser =
    process.getuid?.() === 0 ? ['setpriv', `--reuid=${OTHER_USER}`, `--regid=${OTHER_USER}`, '--clear-groups'] : [];
  const [program = '', ...words] = [...asUser, 'sh', 'deploy/start.sh'];
  const path = `${dirname(process.execPath)}:${process.env['PATH']}`;
  const child = spawn(program, words, { cwd: folder, env: { PATH: path, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const stderr = text(child.stderr);
  atEnd(async () => {
    child.kill('SIGKILL');
    await stderr;
  });
  const [, url = ''] = await findLine(child.stdout, /^listening on (\S+)$/).catch(async () => {
    throw new Error(`the service exited before it listened: ${await stderr}`);
  });
  return { url };
}

function failed({ code, stderr }: Exit): never {
  throw new Error(`the service exited with ${code} before it listened: ${stderr}`);
}
