import { expect, test } from 'vitest';
import { LogOrder } from '../../src/audit/service/log-order.ts';

const MINUTE = 60_000;

/** The problems of chambers created at these times. */
function problemsOf(...times: readonly number[]): readonly string[] {
  const order = new LogOrder();
  for (const [index, at] of times.entries()) {
    const place = { eventId: 1, at, lastEventId: 1, lastAt: at };
    order.take(index + 1, [
      { ...place, did: 'did:key:z6Mk', accountEventId: 1, type: 'chamber.created', recorded: {} },
    ]);
  }
  return order.problems();
}

test('chambers are as old as their ids say, as far as clocks agree', () => {
  expect(problemsOf(0, 0, 5 * MINUTE, 4 * MINUTE, 9 * MINUTE)).toEqual([]);
});

test('chambers that were exchanged are named', () => {
  expect(problemsOf(0, 10 * MINUTE, 5 * MINUTE, 20 * MINUTE)).toEqual(['chamber 3 was created before chamber 2']);
});
