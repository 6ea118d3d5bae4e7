// The lines of a page are checked each time they are read, and the damaged one is found.
import { randomInt } from 'node:crypto';
import type Database from 'better-sqlite3';
import { expect, it, vi } from 'vitest';
import { StreamDamaged } from '../../../src/log/damage.ts';
import { indexEverything } from '../../../src/log/sqlite/event-index.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { entry, flipBit, intrude, openLog } from '../entries.ts';

const LINES = 250;

/** Its lines are in the index on disk, and not in memory. */
async function filled() {
  const path = temporaryDatabase();
  const written = openSqliteStore(path);
  await written.log.append({ entries: Array.from({ length: LINES }, (_, index) => entry(1, index + 1)) });
  await written.close();
  indexEverything(intrude(path));
  const store = openLog(path);
  return { store, path };
}

it.each([1, 8, 9, LINES])('a bit that is flipped in line %i after a read is met by the next one', async (eventId) => {
  const { store, path } = await filled();
  expect((await store.log.readPage(1, 0, 1_000)).count).toBe(LINES);
  flipBit(path, { column: 'line', position: eventId, bit: randomInt(1_000) });
  await expect(store.log.readPage(1, 0, 1_000)).rejects.toThrow(`event ${eventId} is not as it was written`);
  if (eventId > 1) expect((await store.log.readPage(1, 0, eventId - 1)).count).toBe(eventId - 1);
  expect(store.log.damages.of(1)).toBeInstanceOf(StreamDamaged);
});

it('a bit that is misread once is not served', async () => {
  const { store, path } = await filled();
  const page = await store.log.readPage(1, 0, 1_000);
  const statement: Database.Statement = Object.getPrototypeOf(intrude(path).prepare('SELECT 1'));
  const { get } = statement;
  const misread = vi.spyOn(statement, 'get').mockImplementationOnce(function (this: Database.Statement, ...range) {
    const [ndjson, ...rest] = get.apply(this, range) as [Buffer, string, number];
    return [ndjson.fill('?', 7, 8), ...rest];
  });
  expect(await store.log.readPage(1, 0, 1_000)).toEqual(page);
  expect(misread.mock.calls).toContainEqual([1, 0, LINES]);
  expect(store.log.damages.of(1)).toBeUndefined();
  misread.mockRestore();
});
