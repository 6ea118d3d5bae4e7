// Arguments in the forms that hosts and models send, and lost calls and results.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Fetch } from '../../src/reading/response.ts';
import { enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { PUBLIC_URL } from '../kit/test-service.ts';
import { until } from '../kit/until.ts';
import { joinedSeat, openSeat, type Played } from './seat-in-process.ts';

const ROUNDS = { turnSeconds: 600, rounds: { proposal: 2, debate: 2 } };

async function inPhase(phase: Parameters<typeof enterPhase>[2], rules: object = {}): Promise<Played> {
  const played = await joinedSeat(rules as Readonly<Record<string, unknown>>);
  const { seat, other, chamberId } = played;
  const { service } = seat;
  await enterPhase(service, chamberId, 'PROPOSAL');
  await service.must('POST', `/chambers/${chamberId}/propose`, { by: other, body: { name: 'Rain', ticker: 'RAIN' } });
  if (phase !== 'PROPOSAL') await enterPhase(service, chamberId, phase);
  if (phase === 'PROPOSAL' || phase === 'DEBATE') {
    await service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
  }
  return played;
}

describe('arguments', () => {
  it.each([null, '', 'null'])('a tool treats the optional argument %j as omitted', async (left) => {
    const { seat, chamberId } = await inPhase('DEBATE');
    const args = { chamberId, comment: 'Who waters it?', ideaId: left, stance: left, refinement: left, pass: left };
    expect(await seat.call('debate', args)).toMatchObject({ passed: false });
    const event = (await seat.service.events(chamberId)).at(-1);
    expect(event?.payload).toMatchObject({ comment: 'Who waters it?', ideaId: null });
  });

  it('tools accept booleans, numbers, objects and arrays as strings, and enumerated values in any case', async () => {
    const { seat, chamberId } = await inPhase('DEBATE');
    const said = { comment: 'Yes', ideaId: 'rain', stance: 'FOR', refinement: '{"barrels":2}', pass: 'True' };
    expect(await seat.call('debate', { chamberId: `${chamberId}`, ...said })).toMatchObject({ passed: true });
    await enterPhase(seat.service, chamberId, 'ALLOCATE_COMMIT');
    const allocations = '[{"ideaId":"rain","bps":"6000"}]';
    expect(await seat.call('allocate', { chamberId, allocations })).toMatchObject({ abstainedBps: 4_000, final: true });
    expect(await seat.call('chambers', { phase: 'allocate_commit' })).toMatchObject({ chambers: [{ chamberId }] });
  });

  it('tools reject all other arguments and name them', async () => {
    const { seat, chamberId } = await inPhase('DEBATE');
    const wrong = { chamberId, comment: 'x', stance: 'maybe', pass: 'perhaps', refinement: '[1', loud: true };
    const { error, detail } = await seat.call('debate', wrong);
    expect(error).toBe('CLIENT_ERR_INPUT');
    for (const name of ['stance', 'pass', 'refinement', 'loud']) expect(detail).toContain(`${name}:`);
  });
});

describe('a call whose result was lost', () => {
  it('a repeated call returns its first result if it ended the turn or the phase', async () => {
    const { seat, chamberId } = await inPhase('DEBATE', ROUNDS);
    const args = { chamberId, comment: 'Who waters it?', pass: true };
    const first = await seat.call('debate', args);
    seat.service.clock.advance(5 * HOUR);
    expect(await seat.call('debate', args)).toEqual({ ...first, repeated: true });
    // The same call may be a new one later.
    await seat.call('whoami');
    expect(await seat.call('debate', args)).toEqual({ ...first, repeated: true });
    expect(await seat.call('debate', { ...args, comment: 'And then?' })).toMatchObject({
      error: 'FORUM_ERR_PHASE',
      when: 'not again',
    });
  });

  it('a repeated call makes no second move if the agent has the turn again', async () => {
    const { seat, other, chamberId } = await inPhase('DEBATE');
    const args = { chamberId, comment: 'Who waters it?', pass: true };
    const first = await seat.call('debate', args);
    await seat.service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
    expect(await seat.call('debate', args)).toEqual({ ...first, repeated: true });
    const [item] = (await seat.call('todo')).todo;
    expect(item).toMatchObject({ chamberId, must: 'pass' });
    expect(await seat.call('debate', args)).not.toHaveProperty('repeated');
  });
});

describe('allocate', () => {
  it('allocate requires `abstain` if nothing is allocated, and returns the commitment', async () => {
    const { seat, chamberId } = await inPhase('ALLOCATE_COMMIT');
    const nothing = { chamberId, allocations: [{ ideaId: 'RAIN', bps: 0 }] };
    expect(await seat.call('allocate', nothing)).toMatchObject({
      error: 'CLIENT_ERR_INPUT',
      detail: expect.stringContaining('abstain'),
    });
    expect(await seat.call('allocate', { chamberId, abstain: true })).toMatchObject({
      ...{ ok: true, allocations: [], abstainedBps: 10_000, final: true },
    });
  });
});

describe('errors', () => {
  it('the error for an unknown idea lists the existing ideas, also in DEBATE', async () => {
    const { seat, chamberId } = await inPhase('DEBATE');
    const { detail } = await seat.call('debate', { chamberId, comment: 'x', ideaId: 'idea-9' });
    expect(detail).toContain('idea-1 (RAIN)');
  });

  it('errors of the local machine name the file', async () => {
    const { seat, chamberId } = await inPhase('DEBATE');
    const calls = join(seat.folder, 'calls');
    rmSync(calls, { recursive: true, force: true });
    // A file exists in place of the folder for calls.
    writeFileSync(calls, '');
    const error = await seat.call('debate', { chamberId, comment: 'x' });
    expect(error).toMatchObject({ error: 'CLIENT_ERR_KEY', detail: expect.stringContaining(calls) });
  });
});

describe('pass', () => {
  it('pass returns the number of turns left in PROPOSAL', async () => {
    const { seat, other, chamberId } = await inPhase('PROPOSAL', ROUNDS);
    expect(await seat.call('pass', { chamberId })).toMatchObject({ passed: true, turnsLeft: 1 });
    const body = { name: 'Snow', ticker: 'SNOW' };
    await seat.service.must('POST', `/chambers/${chamberId}/propose`, { by: other, body });
    await seat.service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
    expect((await seat.call('todo')).todo).toMatchObject([{ must: 'pass' }]);
    expect(await seat.call('pass', { chamberId })).toMatchObject({ passed: true, turnsLeft: 0 });
  });
});

describe('wait', () => {
  it('wait returns when an agent joins the opener’s chamber, with the number of members', async () => {
    const seat = await openSeat();
    const { chamberId } = await seat.call('open', { name: 'Garden' });
    await seat.call('join', { chamberId });
    const waiting = seat.call('wait', { seconds: 20 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await seat.service.must('POST', `/chambers/${chamberId}/join`, { by: await seat.service.agent() });
    expect(await waiting).toMatchObject({
      due: false,
      todo: [{ chamberId, phase: 'LOBBY', memberCount: 2, maxMembers: null }],
      next: expect.stringContaining('joined'),
    });
  });

  it('wait reports the end of a chamber once, and once more to a repetition, even after a failed read or a restart', async () => {
    let isDown = false;
    const network = (fetch: Fetch): Fetch => {
      return async (url, init) => {
        if (isDown && /\/(outcome|allocations)$/.test(`${url}`))
          return Response.json({ error: 'FORUM_ERR_NOT_FOUND', detail: 'not now' }, { status: 404 });
        return await fetch(url, init);
      };
    };
    const seat = await openSeat({ network });
    const { service, folder } = seat;
    const chamberId = await openChamber(service, []);
    await seat.call('join', { chamberId });
    await seat.call('wait', { seconds: 1 });
    await until(() => existsSync(join(folder, 'calls', 'open-chambers')));
    await seat.close();
    service.clock.advance(6 * HOUR);
    const next = await openSeat({ service, folder, network, isRegistered: false });
    isDown = true;
    expect(await next.call('wait', { seconds: 1 })).toHaveProperty('error');
    isDown = false;
    const { over } = await next.call('wait', { seconds: 1 });
    expect(over).toMatchObject([{ chamberId, page: `${PUBLIC_URL}/chambers/${chamberId}` }]);
    expect((await next.call('wait', { seconds: 1 })).over).toEqual(over);
    expect((await next.call('wait', { seconds: 1 })).over).toEqual([]);
  });
});

describe('chambers', () => {
  it('chambers waits for a new chamber, and shows the topics of chambers that can be joined', async () => {
    const seat = await openSeat();
    await openChamber(seat.service, []);
    const waiting = seat.call('chambers', { phase: 'LOBBY', wait: 20 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    const chamberId = await openChamber(seat.service, [], { topic: 'What should we plant?' });
    expect((await waiting).chambers[0]).toMatchObject({ chamberId, topic: 'What should we plant?' });
  });
});

describe('read', () => {
  it('the first read has full DIDs, links and times; later reads have the first words of the agent’s own comments', async () => {
    const { seat, chamberId } = await inPhase('DEBATE');
    const { agents, page, lines, transcript, next } = await seat.call('read', { chamberId });
    expect(agents.A2).toContain(seat.did);
    expect({ page, lines }).toEqual({
      page: `${PUBLIC_URL}/chambers/${chamberId}`,
      lines: `${PUBLIC_URL}/chambers/${chamberId}/events`,
    });
    expect(transcript).toMatch(/^\d+\. \d\d:\d\d A1 /m);
    const comment = 'Nobody has said who waters it in August, when everybody is away, and who pays.';
    await seat.call('debate', { chamberId, comment });
    const later = await seat.call('read', { chamberId, after: next });
    expect(later.transcript).toContain(comment.slice(0, 40));
    expect(later.transcript).not.toContain(comment);
  });
});

describe('open', () => {
  it('open gives each member two turns to propose and three moves per turn by default', async () => {
    const seat = await openSeat();
    const { chamberId } = await seat.call('open', { name: 'Garden' });
    const view = await seat.service.must('GET', `/chambers/${chamberId}`);
    expect(view).toMatchObject({ rounds: { proposal: 2 }, movesPerTurn: 3 });
  });

  it('a chamber by open has rounds, can be started, and ends without deadlines for a single member', async () => {
    const seat = await openSeat();
    const pace = { turnSeconds: 600, rounds: { proposal: 1, debate: 1 } };
    const { chamberId } = await seat.call('open', { name: 'Quick', ...pace });
    expect(await seat.call('start', { chamberId })).toMatchObject({ error: 'FORUM_ERR_CONFLICT' });
    await seat.call('join', { chamberId });
    const next = (seconds: number) => seat.call('wait', { chamberId, seconds });
    expect(await next(1)).toMatchObject({ due: false, todo: [{ may: ['start'] }] });
    await seat.call('start', { chamberId });
    expect(await next(5)).toMatchObject({ due: true, todo: [{ phase: 'PROPOSAL', must: 'pass' }] });
    await seat.call('propose', { chamberId, name: 'Rain', ticker: 'RAIN', pass: true });
    expect(await next(5)).toMatchObject({ due: true, todo: [{ phase: 'DEBATE', must: 'pass' }] });
    await seat.call('debate', { chamberId, pass: true });
    expect(await next(5)).toMatchObject({ due: true, todo: [{ phase: 'ALLOCATE_COMMIT', must: 'commit' }] });
    await seat.call('allocate', { chamberId, allocations: [{ ideaId: 'idea-1', bps: 10_000 }] });
    const revealed = async () => (await seat.service.must('GET', `/chambers/${chamberId}/allocations`)).revealed;
    await until(async () => {
      await seat.call('todo');
      return (await revealed()).length === 1;
    });
    expect(await seat.call('read', { chamberId })).toMatchObject({ phase: 'ALLOCATE_REVEAL', rounds: pace.rounds });
  });
});
