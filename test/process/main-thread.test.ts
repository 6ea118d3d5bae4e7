// The meter attributes the main thread's time to the payer of each asynchronous context.
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { MainThreadMeter } from '../../src/process/main-thread.ts';

let meter: MainThreadMeter;
afterEach(() => meter.stop());

function started() {
  meter = new MainThreadMeter();
  meter.start();
  const charged = { a: 0, b: 0 };
  const payerOf = (name: 'a' | 'b') => ({
    charge: (millis: number) => {
      charged[name] += millis;
    },
  });
  return { charged, a: payerOf('a'), b: payerOf('b') };
}

function busy(millis: number): void {
  const until = performance.now() + millis;
  while (performance.now() < until);
}

it('the meter charges each payer for the work of its context after waits, even if two contexts alternate', async () => {
  const { charged, a, b } = started();
  const work = async (millis: number) => {
    for (let turn = 0; turn < 4; turn++) {
      await nextTurn();
      await null;
      busy(millis);
    }
  };
  await Promise.all([meter.run(a, () => work(5)), meter.run(b, () => work(1))]);
  await nextTurn();
  expect(charged.a).toBeGreaterThanOrEqual(20);
  expect(charged.b).toBeGreaterThanOrEqual(4);
});

it('the meter does not charge for waiting, nor for work without a payer', async () => {
  const { charged, a } = started();
  const startedAt = performance.now();
  await meter.run(a, async () => {
    await meter.run(undefined, async () => {
      await nextTurn();
      busy(60);
    });
    await sleep(60);
  });
  await nextTurn();
  // The machine may stand still in between.
  expect(charged.a).toBeLessThan(performance.now() - startedAt - 60);
});

it('the meter charges the payer of work that begins in a call until the call ends', async () => {
  const { charged, a } = started();
  const startedAt = performance.now();
  meter.run(a, () => busy(10));
  const millis = performance.now() - startedAt;
  busy(4 * millis);
  await nextTurn();
  expect(charged.a).toBeGreaterThanOrEqual(10);
  // A payer is charged at most three times the time of its work.
  expect(charged.a).toBeLessThanOrEqual(3 * millis);
});

it('the meter charges a payer that a context has entered until another context continues', async () => {
  const { charged, a } = started();
  const request = async () => {
    await null;
    meter.enter(a);
    expect(meter.payer).toBe(a);
    await sleep(1);
    busy(10);
  };
  await request();
  await nextTurn();
  expect(charged.a).toBeGreaterThanOrEqual(10);
});
