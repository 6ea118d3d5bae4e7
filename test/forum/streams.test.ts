// Streams of a shared log: a read returns at least the head of the log at the start of the read, whatever is folded concurrently,
// and states in memory never go back.
import { expect, it } from 'vitest';
import type { Chamber } from '../../src/forum/staging.ts';
import { Streams } from '../../src/forum/streams.ts';
import type { EventLog } from '../../src/log/log.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { FullLogWriter, MEMBERS } from '../kit/full-log.ts';
import { onSqliteOnly } from '../kit/store.ts';
import { atEnd } from '../kit/temporary.ts';

onSqliteOnly('it opens logs in SQLite');

it('a read on a shared log reaches its head, even if it joins folds for older heads', async () => {
  const store = openSqliteStore(':memory:');
  atEnd(() => store.close());
  await new FullLogWriter(store.log).writeChamber(1, { text: '', backed: 1 });
  // Another reader has requested an older head, and gets it only this long after the first page was read.
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
    const streams = new Streams({ ...store, log: shared }, 1_000_000);
    const [, , ours] = await Promise.all([streams.at(1), streams.at(1), streams.at(1)]);
    expect(ours?.state.lastEventId).toBeGreaterThanOrEqual(3);
  }
});

it.each(['held', 'cached'])('a %s state is not replaced by an older one', async (kept) => {
  const store = openSqliteStore(':memory:');
  atEnd(() => store.close());
  await new FullLogWriter(store.log).writeChamber(1, { text: '', backed: 1 });
  const streams = new Streams(store, 1_000_000);
  if (kept === 'held') streams.pin([1]);
  // Another node wrote the event, and this node reads it while its own earlier append is in progress.
  const older = await new Streams(store, 1_000_000).at(1, 1);
  const newest = await streams.at(1);
  streams.publish(1, older as Chamber, 0);
  expect(streams.current(1)).toBe(newest);
  expect(newest?.state.lastEventId).toBeGreaterThan(1);
});

it('the memory of states is limited in bytes, however few there are', async () => {
  const store = openSqliteStore(':memory:');
  atEnd(() => store.close());
  const writer = new FullLogWriter(store.log);
  const text = 'x'.repeat(8_000);
  const ids = [1, 2, 3];
  for (const id of ids) await writer.writeChamber(id, { text, backed: 1 });
  // This is less memory than the texts of two chambers use.
  const streams = new Streams(store, 1.9 * MEMBERS * text.length);
  for (const id of ids) await streams.at(id);
  expect(ids.filter((id) => streams.current(id) !== undefined).length).toBeLessThanOrEqual(1);
});
