// What follows from the command line's variables: the service and the agent of a call.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Agent } from '../client/agent.ts';
import type { CallOptions } from '../client/call.ts';
import { ForumClient } from '../client/forum-client.ts';
import type { Input } from './command.ts';
import { CommandError, printNotice } from './output.ts';
import { isRegularFile } from './write-whole.ts';

const DEFAULT_URL = 'http://127.0.0.1:8787';
/** A person waits: long enough for a restart of the service, no longer. */
const PATIENCE_MILLIS = 3_000;

export function urlOf({ options: { url } }: Input): string {
  // An empty variable is an absent one, as it is for the service.
  return url ?? (process.env['CHAMBERS_URL'] || DEFAULT_URL);
}

export function forumOf(input: Input): ForumClient {
  const onWarning = (warning: string) => printNotice(input.isJson, `Warning: ${warning}`);
  return new ForumClient(urlOf(input), { patienceMillis: PATIENCE_MILLIS, onWarning });
}

export function keyFileOf({ options: { key } }: Input): string {
  return key ?? (process.env['CHAMBERS_KEY_FILE'] || join(homedir(), '.chambers', 'agent.json'));
}

export async function agentOf(input: Input): Promise<Agent> {
  const path = keyFileOf(input);
  if (await isRegularFile(path)) return await Agent.fromKeyFile(forumOf(input), path);
  throw new CommandError('usage', `key file ${path} not found: chambers init --key=${path} creates and registers it`);
}

const WAITING = 'No response yet; the request may have been accepted and is repeated until there is one. Ctrl-C stops.';

/**
 * Sends a signed request. The client repeats it while it is unknown whether the service accepted it: a notice says so, and
 * SIGINT ends the wait.
 */
export async function signedCall<Result>(
  input: Input,
  call: (agent: Agent, options: CallOptions) => Promise<Result>,
): Promise<Result> {
  const agent = await agentOf(input);
  const timer = setTimeout(() => printNotice(input.isJson, WAITING), PATIENCE_MILLIS);
  try {
    const interrupted = new CommandError('unreachable', 'interrupted: the request may have been accepted');
    return await interruptible(interrupted, (signal) => call(agent, { signal }));
  } finally {
    clearTimeout(timer);
  }
}

/** Runs with a signal that SIGINT and SIGTERM abort for the reason. */
export async function interruptible<Result>(
  reason: Error,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController();
  const interrupt = () => stop.abort(reason);
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  try {
    return await run(stop.signal);
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
