// A read on a shared log: at the head that the log had after the call, whatever else is folded at the same time.
import { expect, it } from 'vitest';
import { Streams } from '../../src/forum/streams.ts';
import type { EventLog } from '../../src/log/log.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { FullLogWriter } from '../kit/full-log.ts';
import { atEnd } from '../kit/temporary.ts';

it('a read on a shared log never ends before its head, whichever folds for older heads it meets', async () => {
  const store = openSqliteStore(':memory:');
  atEnd(() => store.close());
  await new FullLogWriter(store.log).writeChamber(1, { text: '', backed: 1 });
  // Another reader asked for its head before ours, and gets it so long after the first page was read.
  for (let microtasks = 0; microtasks < 60; microtasks++) {
    let answer = (_head: number) => {};
    const late = new Promise<number>((resolve) => {
      answer = resolve;
    });
    const heads = [Promise.resolve(1), late, Promise.resolve(3)];
    const own: Partial<EventLog> = {
      readSnapshot: async () => undefined,
      lastEventId: (stream) => heads.shift() ?? store.log.lastEventId(stream),
      readPage: async (...range) => {
        queueMicrotask(async () => {
          for (let turn = 0; turn < microtasks; turn++) await undefined;
          answer(2);
        });
        return store.log.readPage(...range);
      },
    };
    const shared = new Proxy(store.log, {
      get: (target, name) => {
        const value = Reflect.get(own, name) ?? Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const streams = new Streams(shared, 1_000_000);
    const [, , ours] = await Promise.all([streams.at(1), streams.at(1), streams.at(1)]);
    expect(ours?.state.lastEventId).toBeGreaterThanOrEqual(3);
  }
});
