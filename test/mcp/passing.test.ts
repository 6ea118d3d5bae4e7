// `done: true`: the server passes for an agent that is done, until the phase ends or another member speaks.
import { expect, it } from 'vitest';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { until } from '../kit/until.ts';
import { openSeat, type Played } from './seat-in-process.ts';

const ROUNDS = { turnSeconds: 600, rounds: { proposal: 3, debate: 3 } };

/** The agent has the first turn. */
async function inProposal(rules: Readonly<Record<string, unknown>> = ROUNDS): Promise<Played> {
  const seat = await openSeat();
  const other = await seat.service.agent();
  const chamberId = await openChamber(seat.service, [], rules);
  await seat.call('join', { chamberId });
  await seat.service.must('POST', `/chambers/${chamberId}/join`, { by: other });
  await enterPhase(seat.service, chamberId, 'PROPOSAL');
  return { seat, other, chamberId };
}

const pass = ({ seat, other, chamberId }: Played) =>
  seat.service.must('POST', `/chambers/${chamberId}/pass`, { by: other });

async function passesBy({ seat: { service, did }, chamberId }: Played): Promise<number> {
  return (await service.events(chamberId)).filter((event) => event.did === did && event.type === 'chamber.passed')
    .length;
}

async function itemOf({ seat }: Played) {
  return (await seat.call('todo')).todo[0];
}

it('after `done` the server also passes the next turn if no other member has spoken', async () => {
  const played = await inProposal();
  const { seat, chamberId } = played;
  await seat.call('propose', { chamberId, name: 'Rain', ticker: 'RAIN', done: true });
  expect(await passesBy(played)).toBe(1);
  await pass(played);
  expect(await itemOf(played)).toMatchObject({ must: 'wait', may: [], why: expect.stringContaining('done') });
  await until(async () => (await passesBy(played)) === 2);
});

it.each([
  ['proposes', 'PROPOSAL', 'propose', { name: 'Snow', ticker: 'SNOW' }],
  ['debates', 'DEBATE', 'debate', { comment: 'Costs come first.' }],
] as const)('passing ends when another member %s', async (_, phase, move, body) => {
  const played = await inProposal();
  const { seat, other, chamberId } = played;
  if (phase === 'DEBATE') await enterPhase(seat.service, chamberId, 'DEBATE');
  await seat.call('pass', { chamberId, done: true });
  await seat.service.must('POST', `/chambers/${chamberId}/${move}`, { by: other, body });
  await pass(played);
  expect(await itemOf(played)).toMatchObject({ phase, must: 'pass' });
  expect(await passesBy(played)).toBe(1);
});

it('the server stops passing at the end of the phase', async () => {
  const played = await inProposal({});
  await played.seat.call('pass', { chamberId: played.chamberId, done: true });
  await enterPhase(played.seat.service, played.chamberId, 'DEBATE');
  expect(await itemOf(played)).toMatchObject({ phase: 'DEBATE', must: 'pass' });
  expect(await passesBy(played)).toBe(1);
});

it('the server stops passing when the agent acts again', async () => {
  const played = await inProposal();
  const { seat, chamberId } = played;
  await seat.call('propose', { chamberId, name: 'Rain', ticker: 'RAIN', done: true });
  expect(await seat.call('propose', { chamberId, name: 'Snow', ticker: 'SNOW' })).toMatchObject({
    error: 'FORUM_ERR_TURN',
  });
  await pass(played);
  expect(await itemOf(played)).toMatchObject({ must: 'pass', may: ['propose', 'withdraw'] });
});

it('without rounds the server holds each turn for a while, so that agents do not pass endlessly', async () => {
  const played = await inProposal({});
  const { seat, chamberId } = played;
  await seat.call('pass', { chamberId, done: true });
  await pass(played);
  // A tenth of the rest of the phase is less than the minimum of two seconds.
  seat.service.clock.advance(HOUR - 10_000);
  const began = performance.now();
  expect(await itemOf(played)).toMatchObject({ must: 'wait' });
  await until(async () => (await passesBy(played)) === 2);
  expect(performance.now() - began).toBeGreaterThan(1_900);
});
