// Starts servers and loads in processes of their own, so that none shares an event loop with another.
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findLine } from '../../src/process/child-output.ts';
import type { Reply, Results, Task } from './load/driver.ts';
import { INTERRUPT } from './load/probe.ts';
import type { Side } from './sides.ts';

export interface Running {
  /** The host and port. */
  readonly authority: string;
  readonly pid: number;
  /** The time from the start of the process until it reported that it listens. */
  readonly startMillis: number;
  readonly stop: () => Promise<void>;
}

export interface StartOptions {
  readonly databasePath: string;
  /** A program, with its arguments, that runs node. */
  readonly wrapper?: readonly string[];
}

const LISTENING = /^listening on http:\/\/(\S+)$/;

export async function start(side: Side, { databasePath, wrapper = [] }: StartOptions): Promise<Running> {
  const [program = process.execPath, ...before] = [...wrapper, process.execPath];
  const startedAt = performance.now();
  const child = spawn(program, [...before, ...side.command], {
    env: { ...process.env, HOST: '127.0.0.1', PORT: '0', DATABASE_PATH: databasePath, ...side.env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const authority = await listening(child, side);
  const startMillis = performance.now() - startedAt;
  return { authority, pid: child.pid ?? 0, startMillis, stop: () => stop(child) };
}

async function listening(child: ChildProcess, side: Side): Promise<string> {
  if (child.stdout === null) throw new Error('no standard output');
  const [, authority = ''] = await findLine(child.stdout, LISTENING).catch(() => {
    throw new Error(`${side.name} exited before it listened`);
  });
  return authority;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** Runs `use` against a server with a temporary database. */
export async function withServer<T>(side: Side, use: (server: Running) => Promise<T>): Promise<T> {
  return withFolder((folder) => withServerOn(side, join(folder, 'bench.db'), use));
}

export async function withServerOn<T>(
  side: Side,
  databasePath: string,
  use: (server: Running) => Promise<T>,
): Promise<T> {
  const server = await start(side, { databasePath });
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}

export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'chambers-bench-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Runs the task in a separate process, and returns its measurements. */
export async function drive<Kind extends Task['kind']>(task: Extract<Task, { kind: Kind }>): Promise<Results[Kind]> {
  const { result, release } = begin(task);
  return result.finally(release);
}

export interface Begun<Result> {
  readonly result: Promise<Result>;
  /** Asks a task that runs until it is interrupted for its result. */
  readonly interrupt: () => void;
  /** Ends the process; until then, its connections stay open. */
  readonly release: () => void;
}

export function begin<Kind extends Task['kind']>(task: Extract<Task, { kind: Kind }>): Begun<Results[Kind]> {
  const child = fork(fileURLToPath(new URL('./load/driver.ts', import.meta.url)));
  child.send(task);
  return {
    result: resultOf<Results[Kind]>(child),
    interrupt: () => child.send(INTERRUPT),
    release: () => child.connected && child.disconnect(),
  };
}

async function resultOf<Result>(child: ChildProcess): Promise<Result> {
  const answered = Promise.race([once(child, 'message'), once(child, 'exit').then(() => undefined)]);
  const [reply] = ((await answered) ?? [{ error: 'the load ended without a result' }]) as [Reply];
  if ('error' in reply) throw new Error(reply.error);
  return reply.result as Result;
}

/** Returns the resident memory in bytes, as Linux counts it. */
export function residentBytes(pid: number): number {
  const [, kibibytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) * 1024;
}
