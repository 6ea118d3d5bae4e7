// Loads of large chambers wait for each other, because each keeps a whole state outside the cache. Loads of small chambers never
// wait for them.
import { expect, it, vi } from 'vitest';
import { Streams } from '../../src/forum/streams.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { FullLogWriter } from '../kit/full-log.ts';
import { onSqliteOnly } from '../kit/store.ts';
import { atEnd } from '../kit/temporary.ts';

onSqliteOnly('it opens logs in SQLite');

const HEAVY = [1, 2, 3, 4, 5, 6, 7, 8];
const LIGHT = 9;
const HEAVY_LOADS_MAX = 4;
/** The size of a light load plus the page that makes it a heavy one. */
const HEAVY_BYTES = 1_048_576 + 2 * 262_144;

it('at most four large chambers are loaded at once, and a small chamber does not wait', {
  timeout: 120_000,
}, async () => {
  const store = openSqliteStore(':memory:');
  atEnd(() => store.close());
  const writer = new FullLogWriter(store.log);
  for (const id of HEAVY) await writer.writeChamber(id, { text: 'x'.repeat(8_192), backed: 1 });
  await writer.writeChamber(LIGHT, { text: '', backed: 1 });
  const streams = new Streams(store, 1);
  const read = new Map<number, number>();
  const finished: number[] = [];
  let most = 0;
  const readPage = store.log.readPage.bind(store.log);
  vi.spyOn(store.log, 'readPage').mockImplementation(async (stream, after, limit) => {
    const page = await readPage(stream, after, limit);
    read.set(stream as number, (read.get(stream as number) ?? 0) + page.ndjson.length);
    const underWay = [...read].filter(([id, bytes]) => bytes > HEAVY_BYTES && !finished.includes(id));
    most = Math.max(most, underWay.length);
    return page;
  });
  const load = async (id: number) => {
    expect((await streams.at(id))?.state.ideas).toHaveLength(256);
    finished.push(id);
  };
  await Promise.all([...HEAVY, LIGHT].map(load));
  expect(most).toBe(HEAVY_LOADS_MAX);
  expect(finished.toSorted()).toEqual([...HEAVY, LIGHT]);
  expect(finished.indexOf(LIGHT)).toBeLessThan(HEAVY_LOADS_MAX);
});
