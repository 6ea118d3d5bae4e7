import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent } from '../../src/client/index.ts';
import { type LiveService, newAgent, newChamber, openLiveService, PHASE_MILLIS } from '../client/live-service.ts';
import { CLI } from '../kit/programs.ts';
import { until } from '../kit/until.ts';

const MOVES = 60;

let live: LiveService;
let folder: string;
beforeAll(async () => {
  live = await openLiveService();
  folder = await mkdtemp(join(tmpdir(), 'tail-'));
}, 180_000);
afterAll(async () => {
  await live.stop();
  await rm(folder, { recursive: true });
});

it('a tail that is killed again and again writes each event once', async () => {
  const agent = await newAgent(live);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamberId);
  live.advance(2 * PHASE_MILLIS);
  const out = join(folder, 'chamber.ndjson');
  const talking = talk(agent, chamberId);
  while (countLines(await textOf(out)) < MOVES) {
    const tail = spawn(process.execPath, [
      CLI,
      'chamber',
      'tail',
      `${chamberId}`,
      `--out=${out}`,
      `--url=${live.baseUrl}`,
    ]);
    await killAfterMore(tail, out, 7);
    // The file ends as if the kill had come in the middle of a write.
    await appendFile(out, '{"chamberId":');
  }
  await talking;
  const whole = (await textOf(out)).split('\n').slice(0, -1);
  const stored = await (await fetch(`${live.baseUrl}/chambers/${chamberId}/events`)).text();
  expect(whole).toEqual(stored.split('\n').slice(0, whole.length));
});

it('a tail of all chambers prints their lines as they are, from a cursor on', async () => {
  const agent = await newAgent(live);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  const { chamberId: other } = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamberId);
  const words = [CLI, 'tail', `--after=${chamberId}:1`, '--json', `--url=${live.baseUrl}`];
  const tail = spawn(process.execPath, words);
  const ended = once(tail, 'exit');
  let text = '';
  for await (const chunk of tail.stdout) {
    text += chunk;
    if (text.split('\n').length > 2) break;
  }
  tail.kill('SIGKILL');
  await ended;
  const linesOf = async (id: number) => (await fetch(`${live.baseUrl}/chambers/${id}/events`)).text();
  const [, joined] = (await linesOf(chamberId)).split('\n');
  expect(text).toBe(`${await linesOf(other)}${joined}\n`);
});

it('the event that ends a phase is under that phase', async () => {
  const agent = await newAgent(live);
  const pace = { rounds: { proposal: 1, debate: 1 }, turnSeconds: 60 };
  const { chamberId } = await agent.createChamber({ ...newChamber(live.now()), ...pace });
  await agent.joinChamber(chamberId);
  await agent.start(chamberId);
  await agent.pass(chamberId);
  const tail = spawn(process.execPath, [CLI, 'chamber', 'tail', `${chamberId}`, `--url=${live.baseUrl}`]);
  const ended = once(tail, 'exit');
  let text = '';
  for await (const chunk of tail.stdout) {
    text += chunk;
    if (text.includes('passes')) break;
  }
  tail.kill('SIGKILL');
  await ended;
  expect(text.match(/── [A-Z]+|starts|passes/g)).toEqual(['── LOBBY', 'starts', '── PROPOSAL', 'passes']);
});

/** Speaks until the chamber has all its events. */
async function talk(agent: Agent, chamberId: number): Promise<void> {
  for (let eventId = 2; eventId < MOVES + 10; ) {
    ({ eventId } = await agent.debate(chamberId, { comment: `after ${eventId}` }));
  }
}

/** Kills the process with SIGKILL once the file has that many more lines, or all of them. */
async function killAfterMore(child: ChildProcess, path: string, lines: number): Promise<void> {
  const goal = Math.min(countLines(await textOf(path)) + lines, MOVES);
  const ended = once(child, 'exit');
  await until(async () => {
    expect(child.exitCode).toBeNull();
    return countLines(await textOf(path)) >= goal;
  });
  child.kill('SIGKILL');
  await ended;
}

async function textOf(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '');
}

function countLines(text: string): number {
  return text.split('\n').length - 1;
}
