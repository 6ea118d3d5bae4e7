import { expect, test } from 'vitest';
import { LogOrder } from '../../src/audit/service/log-order.ts';

const MINUTE = 60_000;
const KEYS = { receipts: 'r', checkpoints: 'c' };
const CREATION = {
  ...{ eventId: 1, at: 0, lastEventId: 1, lastAt: 0, did: 'did:key:z6Mk', accountEventId: 1 },
  ...({ type: 'chamber.created', recorded: {} } as const),
};

/** Returns the problems of chambers created at these times. */
function problemsOf(...times: readonly number[]): readonly string[] {
  const order = new LogOrder();
  for (const [index, at] of times.entries()) {
    const place = { eventId: 1, at, lastEventId: 1, lastAt: at };
    order.take(index + 1, { accountReferences: [{ ...CREATION, ...place }], pinnedKeys: KEYS });
  }
  return order.problems();
}

/** Returns the problems of chambers whose creations do or do not record keys. */
function problemsOfKeys(...hasKeys: readonly boolean[]): readonly string[] {
  const order = new LogOrder();
  for (const [index, has] of hasKeys.entries())
    order.take(index + 1, { accountReferences: [CREATION], pinnedKeys: has ? KEYS : undefined });
  return order.problems();
}

test('chambers are created in the order of their ids, within the allowed clock skew', () => {
  expect(problemsOf(0, 0, 5 * MINUTE, 4 * MINUTE, 9 * MINUTE)).toEqual([]);
});

test('swapped chambers are reported', () => {
  expect(problemsOf(0, 10 * MINUTE, 5 * MINUTE, 20 * MINUTE)).toEqual(['chamber 3 was created before chamber 2']);
});

test('every creation after the first one that records keys must record keys', () => {
  expect([problemsOfKeys(false, false, true, true), problemsOfKeys(false, false), problemsOfKeys(true)]).toEqual([
    [],
    [],
    [],
  ]);
  expect(problemsOfKeys(false, true, true, false, true, false)).toEqual([
    'event 1 of chamber 4 does not record the service’s keys, although the earlier creation of chamber 2 does',
  ]);
});

test('a chamber without a creation is not reported as lacking keys', () => {
  const order = new LogOrder();
  order.take(1, { accountReferences: [CREATION], pinnedKeys: KEYS });
  order.take(2, { accountReferences: [], pinnedKeys: undefined });
  expect(order.problems()).toEqual([]);
});
