// Runs Anvil as a child process that never outlives this process, however this process ends.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { findLine } from '../process/child-output.ts';
import type { Millis } from '../vocabulary/values.ts';

export interface Anvil {
  readonly rpcUrl: string;
  readonly port: number;
  readonly pid: number;
  readonly isRunning: () => boolean;
  /** Resolves when the process has exited. */
  readonly kill: () => Promise<void>;
}

export interface AnvilOptions {
  /** 0, the default, picks a free port. */
  readonly port?: number;
  /** Aborts the start; has no effect once Anvil is listening. */
  readonly signal?: AbortSignal | undefined;
  readonly startMillisMax?: Millis;
}

const START_MILLIS_MAX = 20_000;
const STDERR_CHARS_MAX = 500;

/**
 * Resolves when Anvil is listening on the loopback interface. Throws if npm has no Anvil for the platform, or Anvil's error if it exits
 * first.
 */
export async function spawnAnvil(args: readonly string[], options: AnvilOptions = {}): Promise<Anvil> {
  const child = spawnGuarded(['--host', '127.0.0.1', '--no-cors', '--port', String(options.port ?? 0), ...args]);
  if (child.pid === undefined) {
    const [error] = await once(child, 'error');
    throw new Error(`cannot start Anvil: ${error.message}`, { cause: error });
  }
  const exited = once(child, 'exit').then(() => dismissGuard(child));
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  const port = await listeningPort(child, options);
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  return { rpcUrl: `http://127.0.0.1:${port}`, port, pid: child.pid, isRunning, kill };
}

/**
 * The guard is a background shell that reads from a pipe held by this process. When this process ends, the pipe closes and the guard kills
 * Anvil. A line on the pipe ends only the guard. `exec` gives Anvil the child's pid.
 */
const GUARD = 'exec 3<&0 </dev/null; (read -r _ <&3 || kill -9 $$) >/dev/null 2>&1 & exec "$0" "$@" 3<&-';

/** Starts Anvil in its own session, out of reach of a terminal's Ctrl-C: the service must save the state before it stops Anvil. */
function spawnGuarded(args: readonly string[]): ChildProcessWithoutNullStreams {
  const binary = anvilBinary();
  if (process.platform === 'win32') return spawn(binary, args, { detached: true });
  return spawn('/bin/sh', ['-c', GUARD, binary, ...args], { detached: true });
}

function dismissGuard({ stdin }: ChildProcessWithoutNullStreams): void {
  stdin.on('error', () => {});
  stdin.end('done\n');
}

/** Throws an Error if npm has not installed Anvil. */
export function anvilBinary(): string {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const binary = process.platform === 'win32' ? 'anvil.exe' : 'anvil';
  try {
    const anvil = createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json');
    return createRequire(anvil).resolve(`@foundry-rs/anvil-${process.platform}-${architecture}/bin/${binary}`);
  } catch {
    throw new Error(`no Anvil is installed for ${process.platform} ${process.arch}: set RPC_URL or CHAIN=none`);
  }
}

async function listeningPort(
  child: ChildProcessWithoutNullStreams,
  { signal, startMillisMax = START_MILLIS_MAX }: AnvilOptions,
): Promise<number> {
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors = `${errors}${chunk}`.slice(-STDERR_CHARS_MAX);
  });
  const closed = new Promise((resolve) => child.once('close', resolve));
  let problem: string | undefined;
  const giveUp = (reason: string) => {
    problem = reason;
    child.kill('SIGKILL');
  };
  const onAbort = () => giveUp('the start of Anvil was aborted');
  const timer = setTimeout(() => giveUp('Anvil did not listen in time'), startMillisMax);
  signal?.addEventListener('abort', onAbort);
  try {
    const [, port] = await findLine(child.stdout, /^Listening on \S+:(\d+)$/);
    return Number(port);
  } catch {
    await closed;
    throw new Error(problem ?? `Anvil exited while starting: ${errors.trim().split('\n', 1)[0]}`);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}
