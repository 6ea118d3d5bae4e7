// The service's clock: which changes of its source it follows, and when its time is in doubt.
import { beforeEach, describe, expect, it } from 'vitest';
import { type ClockProblem, ServiceClock } from '../../src/forum/service-clock.ts';
import { HOUR, START } from '../kit/clock.ts';

const SECOND = 1_000;
const DAY = 24 * HOUR;
const JUMP_MILLIS = 300 * SECOND;

let source: { time: number; elapsed: number };
let problems: (ClockProblem | undefined)[];
let clock: ServiceClock;

function open(lastAt = 0): void {
  problems = [];
  clock = new ServiceClock({
    source: { time: () => source.time, elapsed: () => source.elapsed },
    lastAt,
    jumpMillis: JUMP_MILLIS,
    onProblem: (problem) => void problems.push(problem),
  });
}

beforeEach(() => {
  source = { time: START, elapsed: 0.25 };
  open();
});

/** Lets time pass. As in the service, the clock is read every two seconds. */
function pass(millis: number): void {
  for (let left = millis; left > 0; left -= 2 * SECOND) {
    const step = Math.min(left, 2 * SECOND);
    source.time += step;
    source.elapsed += step;
    clock.now();
  }
}

const aheadMillis = () => clock.problem()?.aheadMillis;

describe('a correct clock', () => {
  it('the service’s time follows a correct clock, even in small steps', () => {
    pass(HOUR);
    source.time += 20 * SECOND;
    pass(SECOND);
    expect(clock.now()).toBe(START + HOUR + 21 * SECOND);
    expect(problems).toEqual([]);
  });

  it('the service’s time stops while the clock is set back a little', () => {
    pass(10 * SECOND);
    source.time -= 20 * SECOND;
    expect(clock.now()).toBe(START + 10 * SECOND);
    pass(15 * SECOND);
    expect(clock.now()).toBe(START + 10 * SECOND);
    pass(10 * SECOND);
    expect(clock.now()).toBe(START + 15 * SECOND);
    expect(problems).toEqual([]);
  });
});

describe.each([2 * DAY, 365 * DAY, -2 * DAY])('a jump by %i ms', (millis) => {
  it('after a jump of the clock, the time is in doubt and stands still until the clock is back', () => {
    pass(HOUR);
    source.time += millis;
    pass(3 * SECOND);
    expect(clock.now()).toBe(START + HOUR + 3 * SECOND);
    expect(aheadMillis()).toBe(millis);
    source.time -= millis;
    expect(clock.problem()).toBeUndefined();
    expect(clock.now()).toBe(START + HOUR + 3 * SECOND);
    expect(problems.map((problem) => problem?.aheadMillis)).toEqual([millis, undefined]);
  });

  it('a second jump of the clock is evaluated separately', () => {
    source.time += millis;
    pass(JUMP_MILLIS - SECOND);
    source.time += DAY;
    pass(JUMP_MILLIS - SECOND);
    expect(aheadMillis()).toBe(millis + DAY);
  });
});

describe('a clock that keeps its new time after a jump', () => {
  it('a clock that jumped ahead is trusted if it keeps its new time', () => {
    source.time += DAY;
    pass(JUMP_MILLIS);
    expect(clock.problem()).toBeDefined();
    pass(2 * SECOND);
    expect(clock.problem()).toBeUndefined();
    expect(clock.now()).toBe(source.time);
  });

  it('the service waits for a clock that jumped back and keeps its new time', () => {
    pass(HOUR);
    source.time -= HOUR;
    pass(JUMP_MILLIS + 4 * SECOND);
    const shown = clock.now();
    expect(clock.problem()?.reason).toMatch(/^the clock is \d+ s behind the log: .*chambers admin reset-clock/);
    pass(HOUR - 60 * SECOND);
    expect(clock.problem()).toBeDefined();
    pass(60 * SECOND);
    expect(clock.problem()).toBeUndefined();
    expect(clock.now() - shown).toBeLessThan(5 * SECOND);
    expect(problems.map((problem) => problem?.reason.split(':')[0])).toEqual([
      'the clock jumped back by 3600 s',
      expect.stringMatching(/^the clock is 3\d{3} s behind the log$/),
      undefined,
    ]);
  });
});

describe('a log that is ahead of the clock at the start', () => {
  it('a start waits until the clock reaches the time of the log, unless the difference is small', () => {
    open(START + 20 * SECOND);
    expect(clock.now()).toBe(START + 20 * SECOND);
    expect(clock.problem()).toBeUndefined();
    open(START + HOUR);
    expect(aheadMillis()).toBe(-HOUR);
    source.time += HOUR - 10 * SECOND;
    source.elapsed += HOUR - 10 * SECOND;
    expect(clock.problem()).toBeUndefined();
  });
});
