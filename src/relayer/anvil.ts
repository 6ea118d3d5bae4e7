// The Anvil process: a child that never outlives this process, however this process ends.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';

export interface Anvil {
  readonly rpcUrl: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves when the process has exited. */
  readonly exited: Promise<void>;
  kill(): Promise<void>;
}

const READY_TIMEOUT_MILLIS = 20_000;
const STDERR_CHARS_MAX = 500;

/**
 * Starts Anvil on the loopback interface (port 0 takes a free one) and resolves when it listens. Throws when the
 * platform has no Anvil, or with Anvil's own error when it exits before that.
 */
export async function spawnAnvil(args: readonly string[], port = 0): Promise<Anvil> {
  const child = spawnGuarded(anvilBinary(), ['--host', '127.0.0.1', '--no-cors', '--port', String(port), ...args]);
  const exited = once(child, 'exit').then(() => dismissGuard(child));
  const listening = await listeningPort(child, exited);
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  return { rpcUrl: `http://127.0.0.1:${listening}`, port: listening, pid: child.pid ?? 0, exited, kill };
}

function anvilBinary(): string {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const binary = process.platform === 'win32' ? 'anvil.exe' : 'anvil';
  try {
    const anvil = createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json');
    return createRequire(anvil).resolve(`@foundry-rs/anvil-${process.platform}-${architecture}/bin/${binary}`);
  } catch {
    throw new Error(`no Anvil is installed for ${process.platform} ${process.arch}: set RPC_URL or CHAIN=none`);
  }
}

/**
 * The guard is a shell beside Anvil that reads from our end of a pipe: when this process ends, however it does, the pipe
 * closes and the guard kills Anvil; a line on it dismisses the guard. `exec` makes the child's pid Anvil's own.
 */
const GUARD = 'exec 3<&0 </dev/null; (read -r _ <&3 || kill -9 $$) >/dev/null 2>&1 & exec "$0" "$@" 3<&-';

/** A session of its own keeps a terminal's Ctrl-C from Anvil: the service stops it in order. */
function spawnGuarded(binary: string, args: readonly string[]): ChildProcess {
  const options = { stdio: ['pipe', 'pipe', 'pipe'] as const, detached: true };
  if (process.platform === 'win32') return spawn(binary, args, { ...options, stdio: [...options.stdio] });
  return spawn('/bin/sh', ['-c', GUARD, binary, ...args], { ...options, stdio: [...options.stdio] });
}

function dismissGuard(child: ChildProcess): void {
  child.stdin?.on('error', () => {});
  child.stdin?.end('done\n');
}

async function listeningPort(child: ChildProcess, exited: Promise<void>): Promise<number> {
  let stdout = '';
  let stderr = '';
  let timer: NodeJS.Timeout | undefined;
  let read: (chunk: Buffer) => void = () => {};
  child.stderr?.on('data', (chunk) => {
    stderr = `${stderr}${chunk}`.slice(-STDERR_CHARS_MAX);
  });
  try {
    return await new Promise<number>((resolve, reject) => {
      read = (chunk) => {
        stdout += chunk;
        const port = /Listening on [^\s]+:(\d+)/.exec(stdout)?.[1];
        if (port !== undefined) resolve(Number(port));
      };
      child.stdout?.on('data', read);
      child.on('error', (error) => reject(new Error(`Anvil did not start: ${error.message}`)));
      exited.then(() => reject(new Error(`Anvil exited at its start: ${stderr.trim()}`)));
      timer = setTimeout(() => reject(new Error('Anvil did not listen in time')), READY_TIMEOUT_MILLIS);
    });
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    clearTimeout(timer);
    // Its log of requests is drained for as long as it runs: a full pipe would block it.
    child.stdout?.off('data', read).resume();
  }
}
