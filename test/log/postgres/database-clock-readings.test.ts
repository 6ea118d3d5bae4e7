// What a node takes of the database's clock, by how long its answers take. The clocks alone are replaced.
import type { Client } from 'pg';
import { beforeEach, expect, it, vi } from 'vitest';
import { DatabaseClock } from '../../../src/log/postgres/database-clock.ts';

const AHEAD_MS = 7_000;
/** Readings of a measurement. */
const READINGS = 4;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date', 'setTimeout', 'clearTimeout'] });
  return () => vi.useRealTimers();
});

/** A database whose answers take as long as the next of these round trips, and as the last one from then on. */
function clockBehind(...roundTrips: readonly number[]): DatabaseClock {
  const left = [...roundTrips];
  const query = async () => {
    const time = Date.now() + AHEAD_MS;
    vi.advanceTimersByTime((left.length > 1 ? left.shift() : left[0]) ?? 0);
    return { rows: [{ time }] };
  };
  return new DatabaseClock({ run: (work) => work({ query } as unknown as Client) });
}

it('takes its first reading from a short round trip', async () => {
  const clock = clockBehind(...Array.from({ length: READINGS }, () => 3_000), 100);
  await clock.start();
  const behind = Date.now() + AHEAD_MS - clock.now();
  clock.close();
  expect(behind).toBeGreaterThanOrEqual(0);
  expect(behind).toBeLessThanOrEqual(101);
});

it('does not start on a database that always takes long', async () => {
  await expect(clockBehind(300).start()).rejects.toThrow(/more than 250 ms/);
});
