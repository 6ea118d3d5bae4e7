// The Anvil process: one child that never outlives this process, whatever ends it, and is ended by it at once.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';

export interface Anvil {
  readonly rpcUrl: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly exited: Promise<void>;
  kill(): Promise<void>;
}

const READY_TIMEOUT_MILLIS = 20_000;
const STDERR_CHARS_MAX = 500;

/**
 * Starts Anvil on the loopback interface (port 0 takes a free one) and resolves when it listens. Throws when the
 * platform has no Anvil, or with what Anvil said when it ends before.
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
    throw new Error(`npm has installed no Anvil for ${process.platform} ${process.arch}: set RPC_URL or CHAIN=none`);
  }
}

/**
 * The guard is a shell beside Anvil that reads from our end of a pipe: when this process ends, however it does, the pipe
 * closes and the guard kills Anvil; a line on it sends the guard away. `exec` makes the child's pid Anvil's own.
 */
const GUARD = 'exec 3<&0 </dev/null; (read -r _ <&3 || kill -9 $$) >/dev/null 2>&1 & exec "$0" "$@" 3<&-';

/** A session of its own keeps a terminal's Ctrl-C from Anvil: the service ends it in order. */
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
  let said = '';
  let complained = '';
  const { promise, resolve, reject } = promiseParts<number>();
  child.stderr?.on('data', (chunk) => {
    complained = `${complained}${chunk}`.slice(-STDERR_CHARS_MAX);
  });
  const listen = (chunk: Buffer) => {
    said += chunk;
    const port = /Listening on [^\s]+:(\d+)/.exec(said)?.[1];
    if (port !== undefined) resolve(Number(port));
  };
  child.stdout?.on('data', listen);
  child.on('error', (error) => reject(new Error(`Anvil does not start: ${error.message}`)));
  exited.then(() => reject(new Error(`Anvil ended as it started: ${complained.trim()}`)));
  const timer = setTimeout(() => reject(new Error('Anvil does not listen in time')), READY_TIMEOUT_MILLIS);
  try {
    return await promise;
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    clearTimeout(timer);
    // Its log of requests must be drained for ever, or a full pipe would stop it.
    child.stdout?.off('data', listen).resume();
  }
}

function promiseParts<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
