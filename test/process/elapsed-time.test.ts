// Elapsed time, measured with clocks that the test controls.
import { beforeEach, describe, expect, it } from 'vitest';
import { ElapsedTime } from '../../src/process/elapsed-time.ts';

const HOUR = 3_600_000;

let machine: { time: number; awake: number; up: number };
let elapsed: () => number;

beforeEach(() => {
  machine = { time: 1_000_000, awake: 500, up: 90_000 };
  const { read } = new ElapsedTime({ time: () => machine.time, awake: () => machine.awake, up: () => machine.up });
  const from = read();
  elapsed = () => read() - from;
});

function pass(millis: number): void {
  machine.time += millis;
  machine.awake += millis;
  machine.up += millis;
}

/** The machine's monotonic clock stands still; after waking, its time is correct at once. */
function sleep(millis: number): void {
  machine.time += millis;
  machine.up += millis;
}

describe('elapsed time', () => {
  it('elapsed time follows the monotonic clock', () => {
    pass(HOUR);
    expect(elapsed()).toBe(HOUR);
  });

  it('elapsed time includes each sleep of the machine', () => {
    for (const night of [1, 2, 3]) {
      pass(HOUR);
      sleep(8 * HOUR);
      pass(HOUR);
      expect(elapsed()).toBe(night * 10 * HOUR);
    }
  });

  it.each([2 * HOUR, -2 * HOUR])('elapsed time is not affected by a clock that was set by %i ms', (millis) => {
    pass(HOUR);
    machine.time += millis;
    pass(HOUR);
    expect(elapsed()).toBe(2 * HOUR);
    sleep(HOUR);
    expect(elapsed()).toBe(3 * HOUR);
  });

  it('elapsed time is correct if the clock is set during a sleep', () => {
    sleep(HOUR);
    machine.time += 48 * HOUR;
    expect(elapsed()).toBe(HOUR);
  });
});

it('elapsed time advances with the clocks of this machine', () => {
  const { read } = new ElapsedTime();
  const from = read();
  expect(read()).toBeGreaterThanOrEqual(from);
  expect(read() - from).toBeLessThan(10_000);
});
