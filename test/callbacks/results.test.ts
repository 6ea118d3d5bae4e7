// When a callback is removed, and when a delivery is retried.
import { describe, expect, it } from 'vitest';
import { AddressLimits, type RequestKind } from '../../src/callbacks/address-limits.ts';
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

  it('the next attempt follows no later than 20 s before the end of the duty, then every 5 s', () => {
    expect(pauseAfter({ tries: 4, left: 100_000, random })).toBe(80_000);
    expect(pauseAfter({ tries: 5, left: 20_000, random })).toBe(5_000);
    expect(pauseAfter({ tries: 1, left: 3_000, random })).toBe(1_000);
  });
});

describe('requests to one address and port', () => {
  const begin = (limits: AddressLimits, count: number, kind: RequestKind) => {
    for (let index = 0; index < count; index++) limits.begin('a', kind);
  };

  it('one address and port gets at most four requests at once, including at most two for unproven agents and one challenge', () => {
    const limits = new AddressLimits();
    begin(limits, 2, 'unproven');
    expect(limits.isBusy('a', 'unproven')).toBe(true);
    begin(limits, 1, 'challenge');
    expect([limits.isBusy('a', 'challenge'), limits.isBusy('a', 'proven')]).toEqual([true, false]);
    begin(limits, 1, 'proven');
    expect([limits.isBusy('a', 'proven'), limits.isBusy('b', 'proven')]).toEqual([true, false]);
  });

  it.each(['proven', 'unproven'] as const)(
    'one address and port gets one %s request at once after three timeouts',
    (kind) => {
      const limits = new AddressLimits();
      for (let count = 0; count < 3; count++) {
        begin(limits, 1, kind);
        expect(limits.isBusy('a', kind)).toBe(false);
        limits.end('a', kind, true);
      }
      begin(limits, 1, kind);
      expect(limits.isBusy('a', kind)).toBe(true);
      limits.end('a', kind, false);
      begin(limits, 1, kind);
      expect(limits.isBusy('a', kind)).toBe(false);
    },
  );

  it('one address and port stays limited for unproven agents even if proven ones respond', () => {
    const limits = new AddressLimits();
    begin(limits, 3, 'unproven');
    for (let count = 0; count < 3; count++) limits.end('a', 'unproven', true);
    begin(limits, 1, 'proven');
    limits.end('a', 'proven', false);
    begin(limits, 1, 'unproven');
    expect([limits.isBusy('a', 'unproven'), limits.isBusy('a', 'proven')]).toEqual([true, false]);
  });
});

describe('the queue of duties', () => {
  const duty = (did: string, chamberId: number) => ({ did, chamberId, must: 'pass', turnBeganAt: 1 }) as const;
  const never = () => false;
  const open = (dutiesMax = 1_000) => new DutyQueue({ dutiesMax, runningMax: 4 });

  it('the queue of duties is served fairly across agents', () => {
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

  /** Attempts all duties that may be attempted; returns their agents. */
  const attempt = (queue: DutyQueue, isSuccess: boolean) => {
    const taken = queue.take(9, 1, never);
    for (const each of taken) {
      if (isSuccess) queue.remove(each, true);
      queue.done(each, { isSuccess });
    }
    return taken.map(({ did }) => did);
  };
  const add = (queue: DutyQueue, dids: readonly string[], id: number) => {
    for (const did of dids) queue.add(duty(did, id), `${did} ${id}`, 0);
  };

  it('the queue of duties reserves half of the connections for proven agents', () => {
    const queue = open();
    add(queue, ['e', 'f'], 1);
    expect(attempt(queue, true)).toEqual(['e', 'f']);
    add(queue, ['a', 'b', 'c', 'd'], 1);
    expect(attempt(queue, false)).toEqual(['a', 'b']);
    expect(attempt(queue, false)).toEqual(['c', 'd']);
    add(queue, ['e', 'f'], 2);
    expect(queue.take(9, 1, never).map(({ did, kind }) => [did, kind])).toEqual([
      ['e', 'proven'],
      ['f', 'proven'],
      ['a', 'unproven'],
      ['b', 'unproven'],
    ]);
  });

  it('the queue of duties prefers agents that have never failed', () => {
    const queue = open();
    add(queue, ['a', 'b'], 1);
    attempt(queue, false);
    add(queue, ['c'], 1);
    expect(queue.take(9, 1, never).map(({ did }) => did)).toEqual(['c', 'a']);
  });

  it('the queue of duties counts an agent as proven again after ten consecutive successes since its failure', () => {
    const queue = open();
    add(queue, ['a'], 0);
    attempt(queue, false);
    for (let id = 0; id < 10; id++) {
      add(queue, ['a'], id);
      expect(queue.take(0, 1, never)).toEqual([]);
      attempt(queue, true);
    }
    add(queue, ['a'], 99);
    expect(queue.take(1, 1, never)).toMatchObject([{ did: 'a', kind: 'proven' }]);
  });

  it('the queue of duties keeps the place of an agent whose address was busy, and tries each address only once', () => {
    const queue = open();
    add(queue, ['a', 'b', 'c'], 1);
    const [first, second] = queue.take(2, 1, never);
    for (const each of [first, second]) {
      if (each === undefined) return expect.fail('too few were taken');
      each.busyAddress = 'x';
      queue.done(each, {});
    }
    expect(queue.take(9, 1, never).map(({ did }) => did)).toEqual(['a', 'c']);
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
