// Clocks that jump: phases never go back, `ts` never falls, and nothing depends on a timer having fired.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEADLINES, PHASES } from '../../src/vocabulary/values.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { HOUR, START, TestClock } from '../kit/clock.ts';
import { Live } from '../kit/live.ts';
import { newFolder } from '../kit/service-process.ts';
import { readEvents } from './log-book.ts';

const PHASE_MOVES = ['join', 'propose', 'debate', 'allocate/commit', 'allocate/reveal'] as const;
const BODIES = {
  join: {},
  propose: { name: 'Idea', ticker: 'IDEA' },
  debate: { comment: 'Yes.' },
  'allocate/commit': { commitment: `0x${'11'.repeat(32)}` },
  'allocate/reveal': { allocations: [], salt: `0x${'22'.repeat(16)}` },
} as const;

describe('a clock set back', () => {
  it('reopens no phase, and ts does not fall', async () => {
    const path = join(newFolder(), 'chambers.db');
    const live = await Live.start({ settings: { DATABASE_PATH: path } });
    const by = await live.agent();
    const chamberId = await live.chamber(by, deadlinesFrom(START));
    live.clock.advance(2 * HOUR);
    await live.must('POST', `/chambers/${chamberId}/debate`, { by, body: BODIES.debate });
    live.clock.set(START);
    expect(await live.phase(chamberId)).toBe('DEBATE');
    expect(await live.call('POST', `/chambers/${chamberId}/join`, { by })).toMatchObject({
      status: 403,
      body: { error: 'FORUM_ERR_PHASE' },
    });
    await live.must('POST', `/chambers/${chamberId}/debate`, { by, body: BODIES.debate });
    const times = readEvents(path)
      .filter((event) => event.chamberId === chamberId)
      .map(({ ts }) => ts);
    expect(times).toEqual([...times].sort());
    expect(times.at(-1)).toBe(times.at(-2));
  });

  it('reopens no phase that a reader saw, across a restart without an event since', async () => {
    const settings = { DATABASE_PATH: join(newFolder(), 'chambers.db') };
    const before = await Live.start({ settings });
    const chamberId = await before.chamber(await before.agent(), deadlinesFrom(START));
    before.clock.advance(3 * HOUR);
    expect(await before.phase(chamberId)).toBe('ALLOCATE_COMMIT');
    await before.stop();
    const after = await Live.start({ settings, clock: new TestClock() });
    expect(await after.phase(chamberId)).toBe('ALLOCATE_COMMIT');
    expect(await after.must('GET', '/chambers?phase=LOBBY')).toEqual([]);
  });

  it('is told of at the start', async () => {
    const settings = { DATABASE_PATH: join(newFolder(), 'chambers.db') };
    const before = await Live.start({ settings });
    before.clock.advance(HOUR);
    await before.stop();
    const lines: string[] = [];
    await Live.start({ settings, clock: new TestClock(), onLog: (line) => lines.push(line) });
    expect(lines.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ behindMillis: HOUR, known: '2030-01-01T01:00:00.000Z' }),
    );
  });
});

describe('a clock set forward', () => {
  it('over several deadlines skips to the phase of the moment', async () => {
    const live = await Live.start();
    const by = await live.agent();
    const chamberId = await live.chamber(by, deadlinesFrom(START));
    live.clock.advance(4 * HOUR);
    expect(await live.phase(chamberId)).toBe('ALLOCATE_REVEAL');
    expect(await live.call('POST', `/chambers/${chamberId}/propose`, { by, body: BODIES.propose })).toMatchObject({
      status: 403,
      body: { error: 'FORUM_ERR_PHASE', detail: expect.stringMatching(/PROPOSAL.*ALLOCATE_REVEAL/) },
    });
  });

  it('by years leaves deadlines of months away in order', async () => {
    const live = await Live.start();
    const by = await live.agent();
    const months = [1, 2, 3, 4, 5].map((month) => month * 30 * 24);
    const chamberId = await live.chamber(by, deadlinesFrom(START, months));
    for (const [index, hours] of months.entries()) {
      live.clock.set(START + hours * HOUR - 1);
      expect(await live.phase(chamberId)).toBe(PHASES[index]);
    }
  });
});

describe("a deadline's very instant", () => {
  it.each(PHASE_MOVES.map((move, index) => [move, index] as const))(
    '%s is refused at it and allowed before',
    async (move, index) => {
      const live = await Live.start();
      const by = await live.agent();
      const deadlines = deadlinesFrom(START);
      const chamberId = await live.chamber(by, deadlines);
      const other = await live.agent();
      const mover = move === 'join' ? other : by;
      const deadline = Date.parse(deadlines[DEADLINES[index] as (typeof DEADLINES)[number]]);
      const attempt = () => live.call('POST', `/chambers/${chamberId}/${move}`, { by: mover, body: BODIES[move] });
      live.clock.set(deadline - 1);
      expect((await attempt()).body).not.toMatchObject({ error: 'FORUM_ERR_PHASE' });
      live.clock.set(deadline);
      expect(await attempt()).toMatchObject({ status: 403, body: { error: 'FORUM_ERR_PHASE' } });
    },
  );
});

describe('a restart', () => {
  it('across a deadline finds the phase at once', async () => {
    const clock = new TestClock();
    const settings = { DATABASE_PATH: join(newFolder(), 'chambers.db') };
    const before = await Live.start({ settings, clock });
    const by = await before.agent();
    const chamberId = await before.chamber(by, deadlinesFrom(START));
    expect(await before.phase(chamberId)).toBe('LOBBY');
    await before.stop();
    clock.advance(HOUR);
    const after = await Live.start({ settings, clock });
    expect(await after.phase(chamberId)).toBe('PROPOSAL');
    await after.must('POST', `/chambers/${chamberId}/propose`, { by, body: BODIES.propose });
  });
});
