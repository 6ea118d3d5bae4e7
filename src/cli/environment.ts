// Finds the service and the agent of a command from its options and the environment variables.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Agent } from '../client/agent.ts';
import { ForumClient } from '../client/forum-client.ts';
import { timerMillis } from '../reading/waiting.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { Input } from './command.ts';
import { CommandError, printNotice } from './output.ts';
import { toMillis } from './values.ts';
import { isRegularFile } from './write-whole.ts';

const DEFAULT_URL = 'http://127.0.0.1:8787';
/** Long enough for a restart of the service, but short, because a person is waiting. */
export const PATIENCE_MILLIS = 3_000;

export function urlOf({ options: { url } }: Input): string {
  // The service also treats an empty variable as absent.
  return url ?? (process.env['CHAMBERS_URL'] || DEFAULT_URL);
}

export function forumOf(input: Input): ForumClient {
  const onWarning = (warning: string) => printNotice(input.isJson, `Warning: ${warning}`);
  return new ForumClient(urlOf(input), { patienceMillis: patienceOf(input) ?? PATIENCE_MILLIS, onWarning });
}

export function patienceOf({ options: { patience } }: Input): Millis | undefined {
  return patience === undefined ? undefined : toMillis(patience);
}

export function keyFileOf({ options: { key } }: Input): string {
  return key ?? (process.env['CHAMBERS_KEY_FILE'] || join(homedir(), '.chambers', 'agent.json'));
}

export async function agentOf(input: Input): Promise<Agent> {
  const path = keyFileOf(input);
  if (await isRegularFile(path)) return await Agent.fromKeyFile(forumOf(input), path);
  throw new CommandError('usage', `key file ${path} not found: chambers init --key=${path} creates and registers it`);
}

/** Calls `run` with a signal that SIGINT and SIGTERM abort with `reason`, and the timeout with its own reason. */
export async function interruptible<Result>(
  reason: Error,
  run: (signal: AbortSignal) => Promise<Result>,
  timeout?: { readonly millis: Millis; readonly reason: Error },
): Promise<Result> {
  const stop = new AbortController();
  const interrupt = () => stop.abort(reason);
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const timer = timeout && setTimeout(() => stop.abort(timeout.reason), timerMillis(timeout.millis));
  try {
    return await run(stop.signal);
  } finally {
    clearTimeout(timer);
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

/** Runs work that ends only with an error or when interrupted; an interruption is a normal end. */
export async function untilInterrupted(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const interrupted = new Error('interrupted');
  await interruptible(interrupted, work).catch((error: unknown) => {
    if (error !== interrupted) throw error;
  });
}
