// The whole life of a chamber over real HTTP, watched over a WebSocket, with a clock that the test moves.
import { expect, it } from 'vitest';
import { PHASES, type Phase } from '../src/vocabulary/values.ts';
import { allocationOf, deadlinesFrom } from './kit/chambers.ts';
import { consume } from './kit/consumers.ts';
import { merkleRootOf } from './kit/merkle.ts';
import { call, newAgent, type Running, run } from './kit/service.ts';

async function read(running: Running, path: string) {
  // biome-ignore lint/suspicious/noExplicitAny: answers are JSON, taken apart below
  return (await (await fetch(running.url + path)).json()) as any;
}

it('a chamber goes through all phases from its lobby to its reveals', async () => {
  const running = await run();
  const [ann, bob, cyd] = [await newAgent(running), await newAgent(running), await newAgent(running)];
  const deadlines = deadlinesFrom(running.clock.read());
  const body = { name: 'Journey', minBackersForGraduation: 2, ...deadlines };
  const { chamberId: id } = await call(running, ann, ['POST', '/chambers', body]);
  const watcher = await consume(running, `/chambers/${id}/stream?after=0`);
  const move = (by: typeof ann, path: string, sent?: unknown) =>
    call(running, by, ['POST', `/chambers/${id}/${path}`, sent]);
  const enter = async (phase: Phase) => {
    const ends = Object.values(deadlines)[PHASES.indexOf(phase) - 1];
    running.clock.set(Date.parse(ends as string));
    expect(await read(running, `/chambers/${id}`)).toMatchObject({ phase });
  };

  const turnOrders = [];
  for (const agent of [ann, bob, cyd]) turnOrders.push(await move(agent, 'join'));
  expect(turnOrders).toEqual([0, 1, 2].map((turnOrder) => ({ ok: true, turnOrder })));

  await enter('PROPOSAL');
  expect(await move(ann, 'propose', { name: 'Sun', ticker: 'SUN', description: 'warm' })).toEqual({
    ideaId: 'idea-1',
    ticker: 'SUN',
  });
  expect(await move(ann, 'pass')).toEqual({ eventId: 6, nextTurnAgent: bob.did });
  expect(await move(bob, 'propose', { name: 'Sea', ticker: 'SEA' })).toEqual({ ideaId: 'idea-2', ticker: 'SEA' });

  await enter('DEBATE');
  expect(await move(ann, 'debate', { ideaId: 'idea-2', comment: 'deep', refinement: { depth: 11_000 } })).toEqual({
    eventId: 8,
  });
  await move(ann, 'pass');
  await move(bob, 'debate', { comment: 'bright' });
  expect(await move(bob, 'pass', {})).toEqual({ eventId: 11, nextTurnAgent: cyd.did });
  expect(await read(running, `/chambers/${id}`)).toMatchObject({ currentTurnAgent: cyd.did });

  await enter('ALLOCATE_COMMIT');
  const wishes = [
    [ann, allocationOf(id, ann, { 'idea-1': 10_000 })],
    [bob, allocationOf(id, bob, { 'idea-1': 4_000, 'idea-2': 6_000 })],
  ] as const;
  for (const [agent, { commit }] of wishes) expect(await move(agent, 'allocate/commit', commit)).toEqual({ ok: true });

  await enter('ALLOCATE_REVEAL');
  for (const [agent, { reveal }] of wishes) {
    expect(await move(agent, 'allocate/reveal', reveal)).toEqual({ ok: true, verified: true });
  }
  running.clock.set(Date.parse(deadlines.allocateRevealDeadline));
  expect(await read(running, `/chambers/${id}`)).toMatchObject({
    phase: 'ALLOCATE_REVEAL',
    commitStatus: 'pending',
    merkleRoot: null,
  });
  expect((await read(running, `/chambers/${id}/allocations`)).tally).toEqual([
    { ideaId: 'idea-1', backers: 2, totalBps: 14_000 },
    { ideaId: 'idea-2', backers: 1, totalBps: 6_000 },
  ]);

  await watcher.until(15);
  expect(watcher.lines.map((line) => JSON.parse(line).type)).toEqual([
    'chamber.created',
    'chamber.joined',
    'chamber.joined',
    'chamber.joined',
    'chamber.proposed',
    'chamber.passed',
    'chamber.proposed',
    'chamber.debated',
    'chamber.passed',
    'chamber.debated',
    'chamber.passed',
    'allocation.committed',
    'allocation.committed',
    'allocation.revealed',
    'allocation.revealed',
  ]);
  expect(await read(running, `/chambers/${id}/merkle-preview`)).toEqual({
    root: merkleRootOf(watcher.lines),
    eventCount: 15,
    asOfEventId: 15,
  });
});
