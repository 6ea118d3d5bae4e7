// How a node reads the database's clock, depending on the round-trip time. Only the clocks are replaced.
import type { Client } from 'pg';
import { beforeEach, expect, it, vi } from 'vitest';
import { DatabaseClock } from '../../../src/log/postgres/database-clock.ts';

const AHEAD_MS = 7_000;
/** The number of readings in a measurement. */
const READINGS = 4;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date', 'setTimeout', 'clearTimeout'] });
  return () => vi.useRealTimers();
});

/** A database whose responses take these round trips in order, and the last one from then on. */
function clockBehind(...roundTrips: readonly number[]): DatabaseClock {
  const left = [...roundTrips];
  const query = async () => {
    const time = Date.now() + AHEAD_MS;
    vi.advanceTimersByTime((left.length > 1 ? left.shift() : left[0]) ?? 0);
    return { rows: [{ time }] };
  };
  return new DatabaseClock({ run: (work) => work({ query } as unknown as Client) });
}

it('a node takes its first clock reading from a short round trip', async () => {
  const clock = clockBehind(...Array.from({ length: READINGS }, () => 3_000), 100);
  await clock.start();
  const behind = Date.now() + AHEAD_MS - clock.now();
  clock.close();
  expect(behind).toBeGreaterThanOrEqual(0);
  expect(behind).toBeLessThanOrEqual(101);
});

it('a node does not start on a database that is always slow', async () => {
  await expect(clockBehind(300).start()).rejects.toThrow(/more than 250 ms/);
});
