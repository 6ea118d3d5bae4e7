import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { ConcurrencyLimit } from '../../src/process/concurrency-limit.ts';

function limitOf(max: number, perKeyMax: number) {
  const limit = new ConcurrencyLimit({ max, perKeyMax });
  const begun: string[] = [];
  const begin = async (...keys: readonly string[]) => {
    for (const key of keys) (limit.acquire(key)?.turn ?? Promise.resolve()).then(() => begun.push(key)).catch(() => {});
    await sleep(0);
  };
  const end = async (key: string) => {
    limit.release(key);
    await sleep(0);
  };
  return { begun, begin, end };
}

it('a concurrency limit bounds the running tasks in total and per key', async () => {
  const { begun, begin } = limitOf(3, 2);
  await begin('a', 'a', 'a', 'b', 'b');
  expect(begun).toEqual(['a', 'a', 'b']);
});

it('a concurrency limit serves keys in turn, however many tasks wait for each', async () => {
  const { begun, begin, end } = limitOf(1, 1);
  await begin('a', 'a', 'a', 'b', 'c');
  for (const key of ['a', 'a', 'b', 'c']) await end(key);
  expect(begun).toEqual(['a', 'a', 'b', 'c', 'a']);
});

it('a task leaves the queue of a concurrency limit once', async () => {
  const limit = new ConcurrencyLimit({ max: 1, perKeyMax: 1 });
  limit.acquire('a');
  const [first, second] = [limit.acquire('b'), limit.acquire('b')];
  first?.leave();
  first?.leave();
  expect(await first?.turn).toBe(false);
  limit.release('a');
  expect(await second?.turn).toBe(true);
  second?.leave();
  limit.release('b');
  expect(limit.acquire('a')).toBeUndefined();
});

it('a concurrency limit starts the next task after a failed one', async () => {
  const limit = new ConcurrencyLimit({ max: 1 });
  const failing = limit.run(() => Promise.reject(new Error('broken')));
  const next = limit.run(async () => 'done');
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe('done');
});
