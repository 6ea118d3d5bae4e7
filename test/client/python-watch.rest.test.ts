// The Python client passes each duty to its handler once, and reveals.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { PYTHON_ENV, python } from '../kit/python.ts';
import { atEnd } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { openProxy } from './cuttable-proxy.ts';
import { type LiveService, newChamber, PHASE_MILLIS, REGISTRATION, runLiveService } from './live-service.ts';

const SLOW = { timeout: 60_000 };

const WATCH = `import sys
from chambers import Agent

agent = Agent.from_key_file(sys.argv[1], sys.argv[2])
count = 0

def on_due(item):
    global count
    count += 1
    print("due", item["phase"], item["must"], flush=True)
    if count == 1:
        raise RuntimeError("not now")
    if item["must"] == "commit":
        agent.commit(item["chamberId"], [], abstain=True)
    elif count < 5:
        agent.pass_turn(item["chamberId"])

agent.watch(on_due, on_report=lambda kind, chamber_id, error: print(kind, flush=True))
`;

python(
  'watch of the Python client passes each turn and the commit to the handler once, retries a failed one, and reveals',
  SLOW,
  async () => {
    const live = await runLiveService();
    const key = join(live.folder, 'agent.json');
    const agent = await Agent.fromKeyFile(new ForumClient(live.baseUrl, live.sharedTime), key);
    await agent.register(REGISTRATION);
    const { chamberId } = await agent.createChamber(newChamber(live.now()));
    await agent.joinChamber(chamberId);
    live.advance(PHASE_MILLIS);
    const lines = startWatch(live, live.baseUrl, key);
    // One turn failed and three turns were passed: a lone member gets the next turn at once.
    await until(() => lines().length === 6);
    live.advance(2 * PHASE_MILLIS);
    await until(() => lines().includes('due ALLOCATE_COMMIT commit'));
    await until(async () => (await agent.todo()).todo[0]?.committed === true);
    live.advance(PHASE_MILLIS);
    await until(() => lines().includes('revealed'));
    const turn = 'due PROPOSAL pass';
    expect(lines()).toEqual([turn, 'duty-failed', turn, turn, turn, turn, 'due ALLOCATE_COMMIT commit', 'revealed']);
  },
);

python('watch of the Python client waits for a service that is unreachable at its start', SLOW, async () => {
  const live = await runLiveService();
  const proxy = await openProxy(live.baseUrl);
  const key = join(live.folder, 'agent.json');
  await (await Agent.fromKeyFile(new ForumClient(live.baseUrl, live.sharedTime), key)).register(REGISTRATION);
  proxy.refuse();
  const lines = startWatch(live, proxy.baseUrl, key);
  await until(() => lines().includes('not-followed'));
  proxy.accept();
  await until(() => lines().length === 2);
  expect(lines()).toEqual(['not-followed', 'followed-again']);
});

/** Starts the program. Returns a function that returns the lines printed so far. */
function startWatch(live: LiveService, baseUrl: string, key: string): () => readonly string[] {
  const env = { ...PYTHON_ENV, ...live.sharedTimeEnv };
  const child = spawn('python3', ['-c', WATCH, baseUrl, key], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  atEnd(() => void child.kill('SIGKILL'));
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    out += chunk;
  });
  return () => out.trim().split('\n');
}
