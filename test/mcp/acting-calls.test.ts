// Tools that are safe to repeat: cut off at any instant and called again, each leaves one event and the same result.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Fetch } from '../../src/reading/response.ts';
import { deadlinesFrom, enterPhase, openChamber } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { Random } from '../kit/random.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { until } from '../kit/until.ts';
import { joinedSeat, openSeat, type Played, type TestSeat } from './seat-in-process.ts';

/** ACTING_CUTS=500 cuts as often. */
const CUTS = Number(process.env['ACTING_CUTS'] ?? 50);
/** The time on a loaded machine. */
const CUT_MILLIS_MAX = 6_000;
const CUTS_PER_SERVICE = 25;
const TURN_MILLIS = 60_000;
const PACE = { turnSeconds: TURN_MILLIS / 1_000 };

/** The point at which a command of the seat is cut off. */
const CUT = [
  ...(['before the request', 'after the answer', 'between'] as const),
  ...(['by the caller', 'by the caller, after it', 'nowhere'] as const),
];

/** What happens between the call and its repetition. */
const MEANWHILE = ['nothing', 'a restart', 'the turn ends', 'a restart, and the turn ends', 'the phase ends'] as const;

interface Network {
  cut: (typeof CUT)[number];
  /** Commands that the service has answered. */
  accepted: number;
}

/** Fails like a network for commands; reads get through. */
function through(network: Network, fetch: Fetch): Fetch {
  return async (url, init) => {
    if (init.method === 'GET') return await fetch(url, init);
    if (network.cut === 'before the request') throw lost();
    const answered = fetch(url, init).then((response) => {
      if (response.ok) network.accepted++;
      return response;
    });
    if (network.cut === 'between') {
      answered.catch(() => {});
      await new Promise(setImmediate);
      throw lost();
    }
    const response = await answered;
    if (network.cut === 'after the answer') throw lost();
    return response;
  };
}

function lost(): Error {
  return Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) });
}

interface Tool {
  readonly name: string;
  /** Besides the chamber's id. */
  readonly args: object;
  /** The events that one call leaves. */
  readonly events: readonly string[];
  /** Brings the chamber to where the tool can be called. */
  readonly prepare: (played: Played) => Promise<void>;
}

const inTurn =
  (phase: 'PROPOSAL' | 'DEBATE') =>
  async ({ seat: { service }, other, chamberId }: Played) => {
    await enterPhase(service, chamberId, 'PROPOSAL');
    await service.must('POST', `/chambers/${chamberId}/propose`, { by: other, body: { name: 'Idea', ticker: 'ONE' } });
    if (phase === 'DEBATE') await enterPhase(service, chamberId, 'DEBATE');
    await service.must('POST', `/chambers/${chamberId}/pass`, { by: other });
  };
const idle = async () => {};
const idea = { name: 'Rain', ticker: 'RAIN', description: 'wet' };

const TOOLS: readonly Tool[] = [
  { name: 'open', args: { name: 'New' }, events: ['chamber.created'], prepare: idle },
  { name: 'join', args: {}, events: ['chamber.joined'], prepare: idle },
  { name: 'propose', args: idea, events: ['chamber.proposed'], prepare: inTurn('PROPOSAL') },
  {
    name: 'propose',
    args: { ...idea, pass: true },
    events: ['chamber.proposed', 'chamber.passed'],
    prepare: inTurn('PROPOSAL'),
  },
  { name: 'pass', args: {}, events: ['chamber.passed'], prepare: inTurn('PROPOSAL') },
  {
    name: 'debate',
    args: { comment: 'hm', ideaId: 'ONE', stance: 'for' },
    events: ['chamber.debated'],
    prepare: inTurn('DEBATE'),
  },
  {
    name: 'debate',
    args: { comment: 'hm', pass: true },
    events: ['chamber.debated', 'chamber.passed'],
    prepare: inTurn('DEBATE'),
  },
  {
    name: 'allocate',
    args: { allocations: [{ ideaId: 'ONE', bps: '4000' }] },
    events: ['allocation.committed'],
    prepare: async (played) => {
      await inTurn('PROPOSAL')(played);
      await enterPhase(played.seat.service, played.chamberId, 'ALLOCATE_COMMIT');
    },
  },
];

/** Long enough for a call in this process whose commands are not cut off. */
const CALL_MILLIS_MAX = 250;

/** The short limit of the test ends, on a slow machine, calls that nothing else cuts off: another server of the seat has longer. */
async function outcomeOf({ call, service, folder }: TestSeat, name: string, args: object) {
  const result = await call(name, args);
  if (result.error !== 'CLIENT_ERR_UNREACHABLE') return result;
  const patient = await openSeat({ service, folder });
  const outcome = await patient.call(name, args);
  await patient.close();
  return outcome;
}

async function eventsBy({ service, did }: TestSeat, chamberId: number, after: number) {
  return (await service.events(chamberId)).slice(after).filter((event) => event.did === did);
}

it(`is cut off ${CUTS} times, and leaves one event and the same result`, {
  timeout: CUTS * CUT_MILLIS_MAX,
}, async () => {
  const random = new Random(40);
  const seen = new Set<string>();
  let service = new TestService();
  for (let n = 0; n < CUTS; n++) {
    if (n % CUTS_PER_SERVICE === 0) service = new TestService();
    const tool = random.pick(TOOLS);
    const [cut, meanwhile] = [random.pick(CUT), random.pick(MEANWHILE)];
    const title = `${n}: ${tool.name} cut off ${cut}, then ${meanwhile}`;
    const network: Network = { cut: 'nowhere', accepted: 0 };
    const folder = temporaryFolder();
    const open = () =>
      openSeat({ service, folder, callMillisMax: CALL_MILLIS_MAX, network: (fetch) => through(network, fetch) });
    let seat = await open();
    const other = await service.agent();
    const members = { ...deadlinesFrom(service.clock.read()), ...PACE };
    const chamberId = await openChamber(service, [other], members);
    if (tool.name !== 'join' && tool.name !== 'open') await outcomeOf(seat, 'join', { chamberId });
    // The turn does not come back, with a third member, when one runs out.
    await service.must('POST', `/chambers/${chamberId}/join`, { by: await service.agent() });
    await tool.prepare({ seat, other, chamberId });

    const args = tool.name === 'open' ? tool.args : { chamberId, ...tool.args };
    const created = async () => (await service.must('GET', '/chambers?limit=200')).length;
    const [eventsBefore, chambersBefore] = [(await service.events(chamberId)).length, await created()];
    const left = async () =>
      tool.name === 'open'
        ? Array((await created()) - chambersBefore).fill('chamber.created')
        : (await eventsBy(seat, chamberId, eventsBefore)).map(({ type }) => type);

    network.cut = cut;
    network.accepted = 0;
    const caller = new AbortController();
    const isCancelled = cut === 'by the caller' || cut === 'by the caller, after it';
    const first = seat.call(tool.name, args, isCancelled ? caller.signal : undefined).catch(() => 'cut off');
    if (cut === 'by the caller') setTimeout(() => caller.abort(), random.below(8));
    // On a slow machine the call may end before the service has accepted anything.
    let isOver = false;
    void first.then(() => {
      isOver = true;
    });
    if (cut === 'by the caller, after it') while (network.accepted === 0 && !isOver) await new Promise(setImmediate);
    caller.abort();
    const result = await first;
    const isMade = async () => (await left()).length === tool.events.length;
    // What the caller gave up goes on for a moment.
    if (isCancelled) await seat.call('whoami');
    network.cut = 'nowhere';
    const wasMade = await isMade();

    if (meanwhile.includes('restart')) {
      await seat.close();
      seat = await open();
    }
    if (meanwhile.includes('turn ends')) service.clock.advance(TURN_MILLIS);
    if (meanwhile === 'the phase ends') service.clock.advance(HOUR);
    const again = await outcomeOf(seat, tool.name, args);

    const isReceived = typeof result === 'object' && result.error === undefined;
    if (isReceived && meanwhile === 'the phase ends' && again.error !== undefined) {
      // Its caller has the result, so that this is another call, which comes too late.
      expect(again.error, title).toMatch(/FORUM_ERR_(PHASE|TURN)/);
      expect(await left(), title).toEqual(tool.events);
    } else if (again.error === undefined) {
      // A turn that has ended meanwhile needs no pass.
      const isEnded = again.passed === false && /ends/.test(meanwhile);
      expect(await left(), title).toEqual(isEnded ? tool.events.slice(0, 1) : tool.events);
    } else {
      // It never reached the service in time, so that nothing was made, or only the pass was not.
      expect(wasMade, `${title}: ${JSON.stringify(again)}`).toBe(false);
      expect(tool.events.slice(0, 1), title).toEqual(expect.arrayContaining([...new Set(await left())]));
      expect(meanwhile, title).toMatch(/ends/);
      expect(again.error, title).toMatch(/FORUM_ERR_(PHASE|TURN)/);
    }
    if (isReceived && again.error === undefined) {
      const { repeated: _, ...same } = again;
      expect(same, title).toEqual(result);
      expect(again.repeated, title).toBe(true);
    }
    seen.add(`${tool.name} ${cut}`).add(`${cut} ${meanwhile}`);
    await seat.close();
  }
  expect(seen.size).toBeGreaterThan(Math.min(60, CUTS / 2));
});

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

describe('an equal call', () => {
  it('in the same turn returns the first result; with `again`, and with other arguments, it is another', async () => {
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

  it('in the next turn is another', async () => {
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

  it('at the same time is the same call', async () => {
    const played = await inDebate();
    const { seat, chamberId } = played;
    const results = await Promise.all([1, 2, 3].map(() => seat.call('debate', { chamberId, comment: 'one' })));
    expect(new Set(results.map(({ eventId }) => eventId)).size).toBe(1);
    expect(await commentsOf(played)).toEqual(['one']);
  });

  it('at two servers of one key is one', async () => {
    const played = await inDebate();
    const { seat, chamberId } = played;
    const second = await openSeat({ service: seat.service, folder: seat.folder });
    const args = { chamberId, comment: 'one' };
    const results = await Promise.all([seat, second].map(({ call }) => call('debate', args)));
    expect(new Set(results.map(({ eventId }) => eventId)).size).toBe(1);
    expect(await commentsOf(played)).toEqual(['one']);
  });

  it('that creates a chamber is the same for ten minutes', async () => {
    const seat = await openSeat();
    const first = await seat.call('open', { name: 'New' });
    expect(await seat.call('open', { name: 'New' })).toEqual({ ...first, repeated: true });
    expect(await seat.call('open', { name: 'New', again: true })).toMatchObject({ chamberId: first.chamberId + 1 });
  });
});

describe.each(['after the answer', 'between'] as const)('a pass that ends the phase, cut off %s', (cut) => {
  it.each([true, false])('and called again by another process, leaves one event; alone: %s', async (isAlone) => {
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
    // What was cut off goes on for a moment.
    await until(async () => (await service.must('GET', `/chambers/${chamberId}`)).phase === 'DEBATE');
    const second = await openSeat({ service, folder });
    const events = await service.events(chamberId);
    expect(await second.call('pass', { chamberId })).toEqual({ eventId: events.at(-1)?.eventId, passed: true });
    expect(await service.events(chamberId)).toHaveLength(events.length);
  });
});

describe('an idea', () => {
  it('of one’s own that is equal is a success, and a conflict says whose the other is', async () => {
    const played = await joinedSeat(PACE);
    const { seat, chamberId } = played;
    await inTurn('PROPOSAL')(played);
    await seat.call('propose', { chamberId, ...idea });
    // The memory of calls is lost.
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

it('the operator’s bounds hold for new moves, not for repeated ones', async () => {
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

it('a salt that is lost is reported at the start, while commits are open', async () => {
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
