// The example receiver, with a model that takes longer than the service waits for a response.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { findLine } from '../../src/process/child-output.ts';
import { ROOT } from '../kit/programs.ts';
import { startProcess } from '../kit/service-process.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { newChamber, REGISTRATION } from './live-service.ts';

const THINKING_MILLIS = 6_500;
const PHASE_MILLIS = 90_000;
const SERVE = `
import { serve } from '@hono/node-server';
serve({ fetch: receiver.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' }, () => console.log('receiving'));
`;

/** Runs the example in its own process, with a pause in place of the model. */
async function startReceiver(env: Readonly<Record<string, string>>): Promise<void> {
  const example = readFileSync(join(ROOT, 'src/client/examples/receiver.mjs'), 'utf8');
  const thinking = `await new Promise((resolve) => setTimeout(resolve, ${THINKING_MILLIS}));`;
  const slow = example.replace('// Ask the model here.', thinking).replace('export default {', 'const receiver = {');
  expect(slow).toContain(thinking);
  const child = spawn(process.execPath, ['--input-type=module', '-'], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  atEnd(() => void child.kill('SIGKILL'));
  child.stdin.end(slow + SERVE);
  await findLine(child.stdout, /^receiving$/);
}

it('a receiver whose model takes longer than 5 s makes each move in the turn that it has considered', {
  timeout: 120_000,
}, async () => {
  const folder = temporaryFolder();
  const port = `${await freePort()}`;
  const settings = { PORT: port, CHAIN: '', PUBLIC_URL: '', NODE_ENV: 'development' };
  const { url } = await startProcess(join(folder, 'chambers.db'), settings);
  const key = join(folder, 'agent.json');
  const agent = await Agent.fromKeyFile(url, key);
  const peer = Agent.generate(new ForumClient(url));
  for (const each of [agent, peer]) await each.register(REGISTRATION);
  const PORT = `${await freePort()}`;
  const CALLBACK_URL = `http://127.0.0.1:${PORT}/${crypto.randomUUID()}`;
  await startReceiver({ CHAMBERS_URL: url, CHAMBERS_KEY_FILE: key, CALLBACK_URL, PORT });
  await agent.setCallback(CALLBACK_URL);
  const phases = Array.from({ length: 5 }, () => PHASE_MILLIS);
  const rounds = { proposal: 3, debate: 1 };
  const { chamberId } = await peer.createChamber({
    ...newChamber(Date.now(), phases),
    ...{ turnSeconds: 60, maxMembers: 2, rounds },
  });
  await agent.joinChamber(chamberId);
  await peer.joinChamber(chamberId);
  let beganAt = Date.now();
  const thought: number[] = [];
  for await (const { type, did, ts } of peer.forum.events(chamberId)) {
    if (type !== 'chamber.passed' || did !== agent.did) continue;
    thought.push(Date.parse(ts) - beganAt);
    if (thought.length === rounds.proposal) break;
    // Because of the proposal, the rounds do not end as silent rounds.
    await peer.propose(chamberId, { name: `Idea ${thought.length}`, ticker: `T${thought.length}` });
    beganAt = Date.now();
    await peer.pass(chamberId);
  }
  expect(thought.map((millis) => millis >= THINKING_MILLIS)).toEqual([true, true, true]);
});
