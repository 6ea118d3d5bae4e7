import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { DEADLINES, PHASES } from '../../src/vocabulary/values.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START, TestClock } from '../kit/clock.ts';
import { call, newAgent, type Running, run } from '../kit/service.ts';
import type { Signer } from '../kit/signer.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { get, prepare, send, type WireAnswer } from '../kit/wire.ts';
import { readEvents } from './log-book.ts';

const PHASE_MOVES = ['join', 'propose', 'debate', 'allocate/commit', 'allocate/reveal'] as const;
const BODIES = {
  join: {},
  propose: { name: 'Idea', ticker: 'IDEA' },
  debate: { comment: 'Yes.' },
  'allocate/commit': { commitment: `0x${'11'.repeat(32)}` },
  'allocate/reveal': { allocations: [], salt: `0x${'22'.repeat(16)}` },
} as const;

type Request = readonly [method: string, path: string, body?: unknown];

function attempt({ url, clock }: Running, by: Signer, [method, path, body]: Request): Promise<WireAnswer> {
  return send(url, prepare(method, path, { by, body, publicUrl: url, now: clock.read() }));
}

async function openChamber(running: Running, by: Signer, deadlines: object): Promise<number> {
  const { chamberId } = await call(running, by, ['POST', '/chambers', { name: 'Test', ...deadlines }]);
  await call(running, by, ['POST', `/chambers/${chamberId}/join`]);
  return chamberId;
}

async function phaseOf({ url }: Running, chamberId: number): Promise<string> {
  return (await get(url, `/chambers/${chamberId}`)).body.phase;
}

describe('a clock set back', () => {
  it('a clock set back reopens no phase, and ts never decreases', async () => {
    const path = temporaryDatabase();
    const live = await run({ DATABASE_PATH: path });
    const by = await newAgent(live);
    const chamberId = await openChamber(live, by, deadlinesFrom(START));
    live.clock.advance(2 * HOUR);
    await call(live, by, ['POST', `/chambers/${chamberId}/debate`, BODIES.debate]);
    live.clock.advance(-20_000);
    expect(await phaseOf(live, chamberId)).toBe('DEBATE');
    expect(await attempt(live, by, ['POST', `/chambers/${chamberId}/join`])).toMatchObject({
      status: 403,
      body: { error: 'FORUM_ERR_PHASE' },
    });
    await call(live, by, ['POST', `/chambers/${chamberId}/debate`, BODIES.debate]);
    const times = readEvents(path)
      .filter((event) => event.chamberId === chamberId)
      .map(({ ts }) => ts);
    expect(times).toEqual([...times].sort());
    expect(times.at(-1)).toBe(times.at(-2));
  });

  it('a clock set back reopens no phase that a reader has seen, even after a restart without new events', async () => {
    const settings = { DATABASE_PATH: temporaryDatabase() };
    const before = await run(settings);
    const chamberId = await openChamber(before, await newAgent(before), deadlinesFrom(START));
    before.clock.advance(3 * HOUR);
    expect(await phaseOf(before, chamberId)).toBe('ALLOCATE_COMMIT');
    await before.stop();
    const after = await run(settings, new TestClock());
    expect(await phaseOf(after, chamberId)).toBe('ALLOCATE_COMMIT');
    expect((await get(after.url, '/chambers?phase=LOBBY')).body).toEqual([]);
  });

  it('a clock set back is reported, and the service waits until the clock has caught up', async () => {
    const settings = { DATABASE_PATH: temporaryDatabase() };
    const before = await run(settings);
    before.clock.advance(HOUR);
    await before.stop();
    const lines: string[] = [];
    await run(settings, new TestClock(), pino({}, { write: (line) => void lines.push(line) }));
    expect(lines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({
        aheadMillis: -HOUR,
        msg: expect.stringMatching(/^alert raised: the clock is 3600 s behind/),
      }),
    );
  });
});

describe('a clock set forward', () => {
  it('a clock set forward past several deadlines leads directly to the current phase', async () => {
    const live = await run();
    const by = await newAgent(live);
    const chamberId = await openChamber(live, by, deadlinesFrom(START));
    live.clock.advance(4 * HOUR);
    expect(await phaseOf(live, chamberId)).toBe('ALLOCATE_REVEAL');
    expect(await attempt(live, by, ['POST', `/chambers/${chamberId}/propose`, BODIES.propose])).toMatchObject({
      status: 403,
      body: { error: 'FORUM_ERR_PHASE', detail: expect.stringMatching(/PROPOSAL.*ALLOCATE_REVEAL/) },
    });
  });

  it('a clock set forward by years keeps later deadlines in order', async () => {
    const live = await run();
    const by = await newAgent(live);
    const months = [1, 2, 3, 4, 5].map((month) => month * 30 * 24);
    const chamberId = await openChamber(live, by, deadlinesFrom(START, months));
    for (const [index, hours] of months.entries()) {
      live.clock.set(START + hours * HOUR - 1);
      expect(await phaseOf(live, chamberId)).toBe(PHASES[index]);
    }
  });
});

describe('the exact time of a deadline', () => {
  it.each(PHASE_MOVES.map((move, index) => [move, index] as const))(
    '%s is rejected at its exact deadline and allowed before',
    async (move, index) => {
      const live = await run();
      const by = await newAgent(live);
      const deadlines = deadlinesFrom(START);
      const chamberId = await openChamber(live, by, deadlines);
      const other = await newAgent(live);
      const mover = move === 'join' ? other : by;
      const deadline = Date.parse(deadlines[DEADLINES[index] as (typeof DEADLINES)[number]]);
      const tryMove = () => attempt(live, mover, ['POST', `/chambers/${chamberId}/${move}`, BODIES[move]]);
      live.clock.set(deadline - 1);
      expect((await tryMove()).body).not.toMatchObject({ error: 'FORUM_ERR_PHASE' });
      live.clock.set(deadline);
      expect(await tryMove()).toMatchObject({ status: 403, body: { error: 'FORUM_ERR_PHASE' } });
    },
  );
});

describe('a restart', () => {
  it('a restart across a deadline leads immediately to the current phase', async () => {
    const clock = new TestClock();
    const settings = { DATABASE_PATH: temporaryDatabase() };
    const before = await run(settings, clock);
    const by = await newAgent(before);
    const chamberId = await openChamber(before, by, deadlinesFrom(START));
    expect(await phaseOf(before, chamberId)).toBe('LOBBY');
    await before.stop();
    clock.advance(HOUR);
    const after = await run(settings, clock);
    expect(await phaseOf(after, chamberId)).toBe('PROPOSAL');
    await call(after, by, ['POST', `/chambers/${chamberId}/propose`, BODIES.propose]);
  });
});
