// The command line's own variables, all named CHAMBERS_…: an unknown one is a typing error that would go unnoticed.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Agent } from '../client/agent.ts';
import { ForumClient } from '../client/forum-client.ts';
import type { Input } from './command.ts';
import { UsageError } from './failure.ts';
import { nearest } from './nearest.ts';

export const VARIABLES = {
  CHAMBERS_URL: 'base URL of the service, http://127.0.0.1:8787 without it',
  CHAMBERS_KEY_FILE: 'key file of the agent, ~/.chambers/agent.json without it',
  NO_COLOR: 'set to anything: no colours',
} as const;

const PREFIX = 'CHAMBERS_';
const DEFAULT_URL = 'http://127.0.0.1:8787';
/** A person waits: long enough for a restart of the service, no longer. */
const PATIENCE_MILLIS = 3_000;

export function checkVariables(): void {
  const known = Object.keys(VARIABLES);
  const stranger = Object.keys(process.env).find((name) => name.startsWith(PREFIX) && !known.includes(name));
  if (stranger === undefined) return;
  throw new UsageError(`unknown variable ${stranger} in the environment: did you mean ${nearest(stranger, known)}?`);
}

export function forumOf({ options }: Input): ForumClient {
  const { CHAMBERS_URL = DEFAULT_URL } = process.env;
  const { url = CHAMBERS_URL } = options;
  return new ForumClient(url, { patienceMillis: PATIENCE_MILLIS });
}

export function keyFileOf({ options }: Input): string {
  const { CHAMBERS_KEY_FILE = join(homedir(), '.chambers', 'agent.json') } = process.env;
  const { key = CHAMBERS_KEY_FILE } = options;
  return key;
}

export async function agentOf(input: Input): Promise<Agent> {
  const path = keyFileOf(input);
  if (!(await isThere(path))) throw new UsageError(`there is no key file ${path}: make one with chambers agent new`);
  return await Agent.fromKeyFile(forumOf(input), path);
}

export async function isThere(path: string): Promise<boolean> {
  const { access } = await import('node:fs/promises');
  return await access(path).then(
    () => true,
    () => false,
  );
}
