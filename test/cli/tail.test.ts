import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Agent } from '../../src/client/index.ts';
import { newAgent, newChamber, PHASE_MILLIS, sharedLiveService } from '../client/live-service.ts';
import { CLI } from '../kit/programs.ts';
import { until } from '../kit/until.ts';

const MOVES = 60;

const live = sharedLiveService();

it('a tail that is killed repeatedly writes each event once', async () => {
  const agent = await newAgent(live);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamberId);
  live.advance(2 * PHASE_MILLIS);
  const out = join(live.folder, 'chamber.ndjson');
  const talking = talk(agent, chamberId);
  while (countLines(await textOf(out)) < MOVES) {
    const words = ['chamber', 'tail', `${chamberId}`, `--out=${out}`, `--url=${live.baseUrl}`];
    const tail = spawn(process.execPath, [CLI, ...words]);
    await killAfterMore(tail, out, 7);
    // Simulates a kill in the middle of a write.
    await appendFile(out, '{"chamberId":');
  }
  await talking;
  const whole = (await textOf(out)).split('\n').slice(0, -1);
  const stored = await (await fetch(`${live.baseUrl}/chambers/${chamberId}/events`)).text();
  expect(whole).toEqual(stored.split('\n').slice(0, whole.length));
});

it('a tail of all chambers prints their stored lines after a cursor', async () => {
  const agent = await newAgent(live);
  const { chamberId } = await agent.createChamber(newChamber(live.now()));
  const { chamberId: other } = await agent.createChamber(newChamber(live.now()));
  await agent.joinChamber(chamberId);
  const words = ['tail', `--after=${chamberId}:1`, '--json', `--url=${live.baseUrl}`];
  const text = await printedBy(words, (printed) => printed.split('\n').length > 2);
  const linesOf = async (id: number) => (await fetch(`${live.baseUrl}/chambers/${id}/events`)).text();
  const [, joined] = (await linesOf(chamberId)).split('\n');
  expect(text).toBe(`${await linesOf(other)}${joined}\n`);
});

it('chamber tail shows the event that ends a phase under that phase', async () => {
  const agent = await newAgent(live);
  const pace = { rounds: { proposal: 1, debate: 1 }, turnSeconds: 60 };
  const { chamberId } = await agent.createChamber({ ...newChamber(live.now()), ...pace });
  await agent.joinChamber(chamberId);
  await agent.start(chamberId);
  await agent.pass(chamberId);
  const words = ['chamber', 'tail', `${chamberId}`, `--url=${live.baseUrl}`];
  const text = await printedBy(words, (printed) => printed.includes('passes'));
  expect(text.match(/── [A-Z]+|starts|passes/g)).toEqual(['── LOBBY', 'starts', '── PROPOSAL', 'passes']);
});

/** Returns the command's output once it is sufficient, and kills the command. */
async function printedBy(words: readonly string[], isEnough: (printed: string) => boolean): Promise<string> {
  const child = spawn(process.execPath, [CLI, ...words]);
  const ended = once(child, 'exit');
  let printed = '';
  for await (const chunk of child.stdout) {
    printed += chunk;
    if (isEnough(printed)) break;
  }
  child.kill('SIGKILL');
  await ended;
  return printed;
}

/** Makes comments until the chamber has all of its events. */
async function talk(agent: Agent, chamberId: number): Promise<void> {
  for (let eventId = 2; eventId < MOVES + 10; ) {
    ({ eventId } = await agent.debate(chamberId, { comment: `after ${eventId}` }));
  }
}

/** Kills the process with SIGKILL once the file has this many more lines, or all of them. */
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
