import { expect, it } from 'vitest';
import { ForumClient } from '../../src/client/index.ts';
import { heapHeld } from '../kit/memory-held.ts';
import { newAgent, newChamber, runLiveService } from './live-service.ts';

const TURNS_PER_MEASUREMENT = 10_000;

it('turns that expire without an event leave nothing in memory', async () => {
  const live = await runLiveService();
  const ada = await newAgent(live);
  const { chamberId } = await ada.createChamber({ ...newChamber(live.now(), [1_000, 1e10]), turnSeconds: 1 });
  await ada.joinChamber(chamberId);
  live.advance(1_000);
  const heap: number[] = [];
  const stop = new AbortController();
  let now = live.now();
  let sleeps = 0;
  const sleep = async (millis: number) => {
    now += millis;
    sleeps++;
    if (sleeps % TURNS_PER_MEASUREMENT === 0) heap.push(await heapHeld());
    if (heap.length === 4) stop.abort();
    stop.signal.throwIfAborted();
  };
  const forum = new ForumClient(live.baseUrl, { ...live.sharedTime, clock: { now: () => now, sleep } });
  const watching = async () => {
    for await (const { phase } of forum.watch(chamberId, { signal: stop.signal })) expect(phase).toBe('PROPOSAL');
  };
  await expect(watching()).rejects.toThrow('aborted');
  // Promise.race for each turn would keep about 300 bytes.
  expect((heap[3] ?? 0) - (heap[0] ?? 0)).toBeLessThan(3 * TURNS_PER_MEASUREMENT * 50);
});
