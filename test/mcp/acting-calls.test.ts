// Tools that are safe to repeat: an identical call returns the first result.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Fetch } from '../../src/reading/response.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { eventually, until } from '../kit/until.ts';
import { CALL_MILLIS_MAX, idea, inTurn, type Network, PACE, through } from './cut-calls.ts';
import { joinedSeat, openSeat, type Played } from './seat-in-process.ts';

async function inDebate(): Promise<Played> {
  const played = await joinedSeat(PACE);
  await inTurn('DEBATE')(played);
  return played;
}

async function commentsOf({ seat, chamberId }: Played): Promise<readonly string[]> {
  const { turns } = await seat.service.must('GET', `/chambers/${chamberId}/transcript`, {
    headers: { accept: 'application/json' },
  });
  const said = (turns as { type: string; words: string[] }[]).filter(({ type }) => type === 'chamber.debated');
  return said.map(({ words }) => words[0] ?? '');
}

describe('an identical call', () => {
  it('an identical call in the same turn returns the first result; `again` or other arguments make a new call', async () => {
    const played = await inDebate();
    const { seat, chamberId } = played;
    const first = await seat.call('debate', { chamberId, comment: 'one' });
    expect(await seat.call('debate', { chamberId: `${chamberId}`, comment: 'one' })).toEqual({
      ...first,
      repeated: true,
    });
    expect(await commentsOf(played)).toEqual(['one']);
    const second = await seat.call('debate', { chamberId, comment: 'one', again: true });
    expect(second).toEqual({ eventId: first.eventId + 1, passed: false });
    await seat.call('debate', { chamberId, comment: 'two' });
    expect(await commentsOf(played)).toEqual(['one', 'one', 'two']);
  });

  it('an identical call in the next turn is a new call', async () => {
    const played = await inDebate();
    const { seat, other, chamberId } = played;
    const [comment, pass] = [
      { chamberId, comment: 'one' },
      { chamberId, comment: 'two', pass: true },
    ];
    await seat.call('debate', comment);
    const passed = await seat.call('debate', pass);
    expect(await seat.call('debate', pass)).toEqual({ ...passed, repeated: true });
    await seat.service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
    for (const args of [comment, pass]) expect(await seat.call('debate', args)).not.toHaveProperty('repeated');
    expect(await commentsOf(played)).toEqual(['one', 'two', 'one', 'two']);
  });

  it('concurrent identical calls are one call', async () => {
    const played = await inDebate();
    const { seat, chamberId } = played;
    const results = await Promise.all([1, 2, 3].map(() => seat.call('debate', { chamberId, comment: 'one' })));
    expect(new Set(results.map(({ eventId }) => eventId)).size).toBe(1);
    expect(await commentsOf(played)).toEqual(['one']);
  });

  it('identical calls at two servers with the same key are one call', async () => {
    const played = await inDebate();
    const { seat, chamberId } = played;
    const second = await openSeat({ service: seat.service, folder: seat.folder });
    const args = { chamberId, comment: 'one' };
    const results = await Promise.all([seat, second].map(({ call }) => call('debate', args)));
    expect(new Set(results.map(({ eventId }) => eventId)).size).toBe(1);
    expect(await commentsOf(played)).toEqual(['one']);
  });

  it('identical calls that create a chamber are one call for ten minutes', async () => {
    const seat = await openSeat();
    const first = await seat.call('open', { name: 'New' });
    expect(await seat.call('open', { name: 'New' })).toEqual({ ...first, repeated: true });
    expect(await seat.call('open', { name: 'New', again: true })).toMatchObject({ chamberId: first.chamberId + 1 });
  });
});

describe.each(['after the answer', 'between'] as const)('a pass that ends the phase, cut off %s', (cut) => {
  it.each([true, false])(
    'a pass that is cancelled and repeated by another process creates one event; alone: %s',
    async (isAlone) => {
      const network: Network = { cut: 'nowhere', accepted: 0 };
      const options = { callMillisMax: 8 * CALL_MILLIS_MAX, network: (fetch: Fetch) => through(network, fetch) };
      const first = await openSeat(options);
      const { service, folder } = first;
      const other = await service.agent();
      const rounds = { proposal: 1, debate: 1 };
      const chamberId = await openChamber(service, isAlone ? [] : [other], { ...PACE, rounds });
      await first.call('join', { chamberId });
      await enterPhase(service, chamberId, 'PROPOSAL');
      if (!isAlone) await service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
      network.cut = cut;
      expect(await first.call('pass', { chamberId })).toMatchObject({ error: 'CLIENT_ERR_UNREACHABLE' });
      await first.close();
      network.cut = 'nowhere';
      // The work of a cancelled call continues for a moment.
      await until(async () => (await service.must('GET', `/chambers/${chamberId}`)).phase === 'DEBATE');
      const second = await openSeat({ service, folder });
      const events = await service.events(chamberId);
      expect(await second.call('pass', { chamberId })).toEqual({
        ...{ eventId: events.at(-1)?.eventId, passed: true },
        turnsLeft: 0,
      });
      expect(await service.events(chamberId)).toHaveLength(events.length);
    },
  );
});

describe('an idea', () => {
  it('proposing one’s own idea again succeeds, and a conflict names the owner of the ticker', async () => {
    const played = await joinedSeat(PACE);
    const { seat, chamberId } = played;
    await inTurn('PROPOSAL')(played);
    await seat.call('propose', { chamberId, ...idea });
    // The stored calls are lost.
    const elsewhere = await openSeat({ service: seat.service, folder: seat.folder });
    for (const name of readdirSync(join(seat.folder, 'calls'))) {
      if (name.endsWith('.json')) writeFileSync(join(seat.folder, 'calls', name), 'not JSON');
    }
    expect(await elsewhere.call('propose', { chamberId, ...idea })).toMatchObject({ ideaId: 'idea-2', repeated: true });
    expect(elsewhere.reports).toEqual([expect.stringContaining('damaged')]);
    expect(readdirSync(join(seat.folder, 'calls')).some((name) => name.includes('broken'))).toBe(true);
    expect(readFileSync(join(seat.folder, 'agent.json'), 'utf8')).toContain('seed');
    expect(await elsewhere.call('propose', { chamberId, ...idea, name: 'Snow' })).toMatchObject({
      error: 'FORUM_ERR_CONFLICT',
      detail: expect.stringContaining('your own idea-2'),
    });
    expect(await elsewhere.call('propose', { chamberId, ...idea, ticker: 'one' })).toMatchObject({
      error: 'FORUM_ERR_CONFLICT',
      detail: expect.stringContaining('idea-1 of A1'),
    });
  });
});

it('the operator’s limits apply to new moves, not to repeated ones', async () => {
  const service = new TestService();
  const seat = await openSeat({ service, limits: { openMax: 1, movesMax: 2 } });
  await seat.call('open', { name: 'New' });
  expect(await seat.call('open', { name: 'Other' })).toMatchObject({
    error: 'CLIENT_ERR_LIMIT',
    detail: expect.stringContaining('--max-open'),
  });
  expect(await seat.call('open', { name: 'New' })).toMatchObject({ repeated: true });
  const ids = [await openChamber(service, []), await openChamber(service, [])];
  await seat.call('join', { chamberId: ids[0] });
  expect(await seat.call('join', { chamberId: ids[1] })).toMatchObject({ error: 'CLIENT_ERR_LIMIT' });
});

it('a missing salt is reported at startup, while commits are open', async () => {
  const played = await joinedSeat();
  const { seat, chamberId } = played;
  await inTurn('PROPOSAL')(played);
  await enterPhase(seat.service, chamberId, 'ALLOCATE_COMMIT');
  await seat.call('allocate', { chamberId, allocations: [{ ideaId: 'idea-1', bps: 1 }] });
  expect((await seat.call('todo')).todo[0]).not.toHaveProperty('problem');
  const elsewhere = temporaryFolder();
  writeFileSync(join(elsewhere, 'agent.json'), readFileSync(join(seat.folder, 'agent.json')), { mode: 0o600 });
  const second = await openSeat({ service: seat.service, folder: elsewhere });
  const { todo } = await second.call('todo');
  expect(todo[0].problem).toContain('.commitments');
  expect(second.reports.join()).toContain(`chamber ${chamberId}`);
});

it('a missing salt is reported when its reveal is due', async () => {
  const seat = await openSeat();
  const { service, folder } = seat;
  const chamberId = await openChamber(service, []);
  await seat.call('join', { chamberId });
  await enterPhase(service, chamberId, 'ALLOCATE_COMMIT');
  await seat.call('allocate', { chamberId, allocations: [], abstain: true });
  await seat.close();
  const elsewhere = temporaryFolder();
  writeFileSync(join(elsewhere, 'agent.json'), readFileSync(join(folder, 'agent.json')), { mode: 0o600 });
  await enterPhase(service, chamberId, 'ALLOCATE_REVEAL');
  const second = await openSeat({ service, folder: elsewhere, isRegistered: false });
  const problem = await eventually(async () => {
    const { todo } = await second.call('todo');
    expect(todo).toMatchObject([{ problem: expect.stringContaining('is not in this agent') }]);
    return todo[0].problem;
  });
  expect(await second.call('wait', { seconds: 1 })).toMatchObject({ due: false, todo: [{ must: 'reveal', problem }] });
});
