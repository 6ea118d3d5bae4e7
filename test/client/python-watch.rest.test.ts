// The Python client passes each duty to its handler once, and reveals.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { PYTHON_ENV, python } from '../kit/python.ts';
import { atEnd } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';
import { newChamber, PHASE_MILLIS, REGISTRATION, runLiveService } from './live-service.ts';

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

python('watch hands over each turn and the commit once, a failed one again, and reveals', SLOW, async () => {
  const live = await runLiveService();
  const key = join(live.folder, 'agent.json');
  const agent = await Agent.fromKeyFile(new ForumClient(live.baseUrl, live.sharedTime), key);
  await agent.register(REGISTRATION);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamberId);
  live.advance(PHASE_MILLIS);
  const env = { ...PYTHON_ENV, ...live.sharedTimeEnv };
  const child = spawn('python3', ['-c', WATCH, live.baseUrl, key], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  atEnd(() => void child.kill('SIGKILL'));
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    out += chunk;
  });
  const lines = () => out.trim().split('\n');
  // The turn that failed, and three turns that it passed: a lone member gets the next turn at once.
  await until(() => lines().length === 6);
  live.advance(2 * PHASE_MILLIS);
  await until(() => out.includes('ALLOCATE_COMMIT'));
  await until(async () => (await agent.todo()).todo[0]?.committed === true);
  live.advance(PHASE_MILLIS);
  await until(() => out.includes('revealed'));
  const turn = 'due PROPOSAL pass';
  expect(lines()).toEqual([turn, 'duty-failed', turn, turn, turn, turn, 'due ALLOCATE_COMMIT commit', 'revealed']);
});
