// Long lists are read in pages that take turns with all other reads, so that readers of lists do not delay moves.
import { expect, it, vi } from 'vitest';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { FullLogWriter } from '../kit/full-log.ts';
import { run } from '../kit/service.ts';
import { temporaryDatabase } from '../kit/temporary.ts';
import { get } from '../kit/wire.ts';

const READERS = 20;
const IDEAS = 95;
const LIMIT = 87;

it('at most four of 20 readers of long lists read a page per turn of the event loop, and each gets its list', async () => {
  const path = temporaryDatabase();
  const store = openSqliteStore(path);
  await new FullLogWriter(store.log).writeChamber(1, { text: '議'.repeat(2_000), backed: IDEAS, deployed: IDEAS });
  const newest = await store.lists.listGraduatedIdeas({ limit: LIMIT });
  await store.close();
  const running = await run({ DATABASE_PATH: path });

  let pages = 0;
  let pagesOfTurn = 0;
  let most = 0;
  const { lists: served } = running.service.forum.store;
  const read = served.listGraduatedIdeas.bind(served);
  vi.spyOn(served, 'listGraduatedIdeas').mockImplementation((query) => {
    if (pagesOfTurn === 0) {
      setImmediate(() => {
        pagesOfTurn = 0;
      });
    }
    pages++;
    most = Math.max(most, ++pagesOfTurn);
    return read(query);
  });
  const lists = await Promise.all(Array.from({ length: READERS }, () => get(running.url, `/ideas?limit=${LIMIT}`)));

  for (const { status, body } of lists) expect({ status, body }).toEqual({ status: 200, body: newest });
  expect(newest).toHaveLength(LIMIT);
  expect(pages).toBe(READERS * 9);
  // A counted turn covers two of the lanes' turns if one of these begins within it.
  expect(most).toBeLessThanOrEqual(8);
});
