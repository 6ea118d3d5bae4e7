// A chamber's feed between its consumers and a log that fails for a moment.
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { ForumLog } from '../../src/log/log.ts';
import { type Tail, Tails } from '../../src/stream/tail.ts';
import { openChamber } from '../kit/chambers.ts';
import { House } from '../kit/house.ts';

/** What came to the tail first: how many events, or its end. */
function firstOf(tail: Tail): Promise<number | 'ended'> {
  return new Promise((resolve) =>
    tail.follow({ take: ({ count }) => void resolve(count), end: () => resolve('ended') }),
  );
}

it('reads anew for whoever comes after a failed read', async () => {
  let isFailing = false;
  const failing = (log: ForumLog): ForumLog =>
    new Proxy(log, {
      get: (target, name) => {
        if (name === 'readPage' && isFailing) return () => Promise.reject(new Error('not now'));
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  const house = new House({ wrapLog: failing });
  const id = await openChamber(house, [await house.agent()]);
  const tails = new Tails(house.forum);
  // Keeps the feed, waiting at the head, while others come and go.
  await firstOf(tails.open(id, 0));
  await nextTick();
  isFailing = true;
  expect(await firstOf(tails.open(id, 1))).toBe('ended');
  isFailing = false;
  expect(await firstOf(tails.open(id, 1))).toBe(1);
  tails.stop();
});
