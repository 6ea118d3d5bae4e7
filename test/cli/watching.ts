// `chambers watch` as a process, for its tests.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { type LiveService, newChamber, PHASE_MILLIS, REGISTRATION } from '../client/live-service.ts';
import { CLI } from '../kit/programs.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';

/** An agent with a key file whose turn it is in a chamber, without a time limit. */
export async function agentInTurn(live: LiveService) {
  const folder = temporaryFolder();
  const key = join(folder, 'agent.json');
  const agent = await Agent.fromKeyFile(new ForumClient(live.baseUrl, live.sharedTime), key);
  await agent.register(REGISTRATION);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  return { agent, chamberId, folder, key };
}

interface Watch {
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly err: () => string;
}

export function startWatch(live: LiveService, key: string, ...words: readonly string[]): Watch {
  const env = { ...process.env, ...live.sharedTimeEnv, CHAMBERS_URL: live.baseUrl, CHAMBERS_KEY_FILE: key };
  const child = spawn(process.execPath, [CLI, 'watch', ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk) => (printed.out += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk) => (printed.err += chunk));
  atEnd(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  return { child, out: () => printed.out, err: () => printed.err };
}
