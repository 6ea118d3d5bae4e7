// When a callback is removed, and when a delivery is retried.
import { describe, expect, it } from 'vitest';
import { AddressLimits } from '../../src/callbacks/address-limits.ts';
import { DutyQueue } from '../../src/callbacks/queue.ts';
import { Results } from '../../src/callbacks/results.ts';
import { pauseAfter } from '../../src/callbacks/tries.ts';
import { openLog } from '../log/entries.ts';

const DAY = 86_400_000;
const DID = 'did:key:zAnn';

async function registered() {
  const { callbacks } = openLog();
  await callbacks.put({ did: DID, url: 'https://ann.example/', since: 0 });
  return { callbacks, results: new Results(callbacks) };
}

describe('a callback', () => {
  it('a callback is removed after 50 consecutive duties and 24 hours without success', async () => {
    const { callbacks, results } = await registered();
    const miss = async (at: number) => {
      const callback = await results.current(DID);
      if (callback !== undefined) results.missed(callback, at);
      return callback?.failures;
    };
    for (let count = 0; count < 60; count++) await miss(DAY - 1);
    expect(await miss(DAY)).toBe(60);
    expect(await results.current(DID)).toBeUndefined();
    await results.write();
    expect(await callbacks.get(DID)).toMatchObject({ url: null, removed: 'failing', failures: 61 });
  });

  it('a callback remains if a delivery has succeeded in between, or fewer than 50 duties have failed', async () => {
    const { results } = await registered();
    const current = async () => (await results.current(DID)) ?? expect.fail('it was removed');
    for (let count = 0; count < 49; count++) results.missed(await current(), 3 * DAY);
    results.tried(await current(), { at: 3 * DAY, status: 204 });
    for (let count = 0; count < 70; count++) results.missed(await current(), 3 * DAY + 1);
    expect(await current()).toMatchObject({ failures: 70, removed: null });
  });

  it('a callback is not overwritten by an older result if it is set again before the result is written', async () => {
    const { callbacks, results } = await registered();
    const callback = await results.current(DID);
    if (callback !== undefined) results.tried(callback, { at: 5, status: 410 });
    await callbacks.put({ did: DID, url: 'https://ann.example/2', since: 6 });
    expect(await results.current(DID)).toMatchObject({ url: 'https://ann.example/2', last: null });
    await results.write();
    expect(await callbacks.get(DID)).toMatchObject({ url: 'https://ann.example/2', removed: null });
  });
});

describe('the next attempt', () => {
  const random = 0.5;
  it.each([
    [1, 1_000],
    [2, 5_000],
    [3, 25_000],
    [4, 125_000],
    [9, 3_600_000],
  ])('the next attempt after %i failed attempts follows after %i ms', (tries, pause) => {
    expect(pauseAfter({ tries, left: Number.POSITIVE_INFINITY, random })).toBe(pause);
    expect(pauseAfter({ tries, left: Number.POSITIVE_INFINITY, random: 0 })).toBe(0.8 * pause);
  });

  it('the next attempt follows at the latest 20 s before the end of the duty, then every 5 s', () => {
    expect(pauseAfter({ tries: 4, left: 100_000, random })).toBe(80_000);
    expect(pauseAfter({ tries: 5, left: 20_000, random })).toBe(5_000);
    expect(pauseAfter({ tries: 1, left: 3_000, random })).toBe(1_000);
  });
});

describe('one address and port', () => {
  it('one address and port gets four requests at once, and one after three consecutive timeouts', () => {
    const limits = new AddressLimits();
    const begin = (count: number) => {
      for (let index = 0; index < count; index++) limits.begin('a');
    };
    begin(3);
    expect(limits.isBusy('a')).toBe(false);
    begin(1);
    expect([limits.isBusy('a'), limits.isBusy('b')]).toEqual([true, false]);
    for (let index = 0; index < 3; index++) limits.end('a', true);
    expect(limits.isBusy('a')).toBe(true);
    limits.end('a', false);
    expect(limits.isBusy('a')).toBe(false);
  });
});

describe('the queue of duties', () => {
  const duty = (did: string, chamberId: number) => ({ did, chamberId, must: 'pass', turnBeganAt: 1 }) as const;
  const never = () => false;
  const open = (dutiesMax = 1_000) => new DutyQueue({ dutiesMax, runningMax: 4 });

  it('the queue of duties is served fairly by agent', () => {
    const queue = open();
    for (let count = 0; count < 100; count++) queue.add(duty('ann', count), `ann ${count}`, 0);
    queue.add(duty('bob', 1), 'bob 1', 0);
    const [first, second] = queue.take(4, 1, never);
    expect([first?.did, second?.did]).toEqual(['ann', 'bob']);
    expect(queue.take(4, 1, never)).toEqual([]);
    for (const taken of [first, second]) if (taken !== undefined) queue.done(taken, {});
    expect(queue.take(1, 1, never)[0]?.did).toBe('ann');
  });

  it('the queue of duties holds at most dutiesMax duties, each once', () => {
    const queue = open(2);
    const added = [1, 2, 1, 3].map((id) => queue.add(duty('ann', id), `${id}`, 0));
    expect([added, queue.size]).toEqual([[true, true, true, false], 2]);
    const [taken] = queue.take(1, 1, never);
    if (taken !== undefined) queue.remove(taken, true);
    expect(queue.add(duty('ann', 1), '1', 0)).toBe(true);
    expect([queue.size, queue.add(duty('ann', 3), '3', 0)]).toEqual([1, true]);
  });

  it('the queue of duties holds at most 100 duties of one agent', () => {
    const queue = open();
    const added = Array.from({ length: 101 }, (_, id) => queue.add(duty('ann', id), `${id}`, 0));
    expect(added.indexOf(false)).toBe(100);
    expect(queue.add(duty('bob', 1), 'bob', 0)).toBe(true);
  });

  it('the queue of duties reserves half of the connections for agents whose last attempt succeeded', () => {
    const queue = open();
    for (const did of ['a', 'b', 'c', 'd']) queue.add(duty(did, 1), did, 0);
    for (const taken of queue.take(4, 1, never)) queue.done(taken, { isFailing: true });
    for (const did of ['e', 'f']) queue.add(duty(did, 1), did, 0);
    expect(queue.take(9, 1, never).map(({ did }) => did)).toEqual(['a', 'b', 'e', 'f']);
  });

  it('the queue of duties skips a busy address, and an agent that waits for its next attempt', () => {
    const queue = open();
    queue.add(duty('ann', 1), '1', 0);
    const [taken] = queue.take(1, 1, never);
    if (taken === undefined) return expect.fail('nothing was taken');
    taken.busyAddress = 'x';
    queue.done(taken, { restsUntil: 5 });
    expect(queue.take(1, 4, never)).toEqual([]);
    expect(queue.take(1, 6, (address) => address === 'x')).toEqual([]);
    expect(queue.take(1, 6, never).length).toBe(1);
  });
});
