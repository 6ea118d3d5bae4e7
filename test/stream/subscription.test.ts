// Tests subscriptions to a log that grows at any time, or fails temporarily.
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { ALL_CHAMBERS, type OrderedPage, type Page } from '../../src/log/log.ts';
import { ReadQueue } from '../../src/log/read-queue.ts';
import { type Source, Subscriptions } from '../../src/stream/subscription.ts';

/** A chamber's log of empty lines. It grows, and wakes its followers, when the test calls grow(). */
class GrowingLog implements Source {
  lastEventId = 1;
  isFailing = false;
  readonly withholding = { through: 0 };
  readonly #wakes = new Set<() => void>();
  readonly #pageLinesMax: number;

  constructor(pageLinesMax = 3) {
    this.#pageLinesMax = pageLinesMax;
  }

  readonly log = {
    readQueue: new ReadQueue(),
    lastEventId: async () => this.lastEventId,
    lastPlace: async () => this.lastEventId,
    /** Every third place belongs to an account. */
    readAll: async (after: number): Promise<OrderedPage> => {
      const last = Math.min(after + this.#pageLinesMax - 1, this.lastEventId);
      const count = Array.from({ length: last - after }, (_, at) => after + at + 1).filter(isOfChamber).length;
      await Promise.resolve();
      return { ndjson: Buffer.from('\n'.repeat(count)), count, last };
    },
    readPage: async (_stream: unknown, after: number): Promise<Page> => {
      if (this.isFailing) throw new Error('not now');
      const count = Math.min(this.#pageLinesMax, this.lastEventId - after);
      await Promise.resolve();
      return { ndjson: Buffer.from('\n'.repeat(count)), count };
    },
  };

  follow(_chamberId: number, wake: () => void): () => void {
    this.#wakes.add(wake);
    return () => this.#wakes.delete(wake);
  }

  grow(): void {
    this.lastEventId++;
    for (const wake of this.#wakes) wake();
  }
}

function isOfChamber(place: number): boolean {
  return place % 3 !== 0;
}

async function microtasks(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Promise.resolve();
}

/** Opens a subscription whose consumer applies backpressure after every second page; returns the ids of the events that it takes. */
function record(subscriptions: Subscriptions, after: number): readonly number[] {
  const eventIds: number[] = [];
  let pages = 0;
  subscriptions.open(1, after, {
    take: ({ count }) => {
      for (let line = 0; line < count; line++) eventIds.push(after + eventIds.length + 1);
      return pages++ % 2 === 0 ? microtasks(5) : undefined;
    },
    end: () => {},
  });
  return eventIds;
}

it('a subscription neither misses nor repeats an event, whenever the log grows', async () => {
  for (let first = 0; first < 40; first++) {
    for (let second = 0; second < 12; second++) {
      const log = new GrowingLog();
      const subscriptions = new Subscriptions(log);
      const received = [0, 0, 1].map((after) => record(subscriptions, after));
      await microtasks(first);
      log.grow();
      await microtasks(second);
      log.grow();
      log.grow();
      await nextTick();
      expect([first, second, received]).toEqual([
        first,
        second,
        [
          [1, 2, 3, 4],
          [1, 2, 3, 4],
          [2, 3, 4],
        ],
      ]);
      expect(await subscriptions.lag()).toBe(0);
      subscriptions.stop();
    }
  }
});

it('a subscription to all chambers skips events of accounts, but counts them in its lag', async () => {
  for (let first = 0; first < 40; first++) {
    const log = new GrowingLog();
    const subscriptions = new Subscriptions(log);
    let received = 0;
    const take = ({ count }: Page) => {
      received += count;
      return undefined;
    };
    subscriptions.open(ALL_CHAMBERS, 0, { take, end: () => {} });
    await microtasks(first);
    for (let grown = 0; grown < 8; grown++) log.grow();
    expect(await subscriptions.lag()).toBeGreaterThan(0);
    while ((await subscriptions.lag()) > 0) await nextTick();
    expect([first, received]).toEqual([first, 6]);
    subscriptions.stop();
  }
});

it('a subscription ends once it has delivered the event that ends the stream', async () => {
  const log = new GrowingLog();
  const subscriptions = new Subscriptions(log);
  let received = 0;
  let endEventId: number | undefined;
  const take = ({ count }: Page) => {
    received += count;
    return undefined;
  };
  const ended = new Promise((end) => subscriptions.open(1, 0, { take, end, endEventId: async () => endEventId }));
  await nextTick();
  endEventId = 3;
  log.grow();
  await nextTick();
  expect(received).toBe(2);
  log.grow();
  expect(await ended).toBe('over');
  expect(received).toBe(3);
});

/** Resolves to the number of events in a new consumer's first page, or to its end. */
function first(subscriptions: Subscriptions, after: number): Promise<number | 'ended'> {
  return new Promise((resolve) =>
    subscriptions.open(1, after, { take: ({ count }) => void resolve(count), end: () => resolve('ended') }),
  );
}

it('a consumer that arrives after a failed read causes another read', async () => {
  const log = new GrowingLog();
  const subscriptions = new Subscriptions(log);
  log.grow();
  // Waits at the head, so that the topic stays open for later consumers.
  await first(subscriptions, 0);
  await nextTick();
  log.isFailing = true;
  expect(await first(subscriptions, 1)).toBe('ended');
  log.isFailing = false;
  expect(await first(subscriptions, 1)).toBe(1);
  subscriptions.stop();
});

it('a subscription over its budget delivers nothing, then every line once, and does not delay others', async () => {
  const log = new GrowingLog(10);
  const subscriptions = new Subscriptions(log);
  const other = record(subscriptions, 1);
  const pages: number[] = [];
  let isOverBudget = false;
  let renew = () => {};
  const waitForBudget = () => new Promise<void>((resolve) => (renew = resolve));
  const allowance = { isOverBudget: () => isOverBudget, waitForBudget };
  subscriptions.open(1, 1, { take: ({ count }) => void pages.push(count), end: () => {}, allowance });
  await nextTick();
  log.grow();
  await nextTick();
  expect(pages).toEqual([1]);
  isOverBudget = true;
  for (let event = 0; event < 3; event++) {
    log.grow();
    await nextTick();
  }
  expect(pages).toEqual([1]);
  expect(other).toEqual([2, 3, 4, 5]);
  isOverBudget = false;
  renew();
  await nextTick();
  log.grow();
  await nextTick();
  expect(pages).toEqual([1, 3, 1]);
});
