// Every read of a page verifies its lines, and names a damaged line.
import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { StreamDamaged } from '../../../src/log/damage.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { entry, flipBit, openLog } from '../entries.ts';

const LINES = 250;

async function filled() {
  const path = temporaryDatabase();
  const written = openSqliteStore(path);
  await written.log.append({ entries: Array.from({ length: LINES }, (_, index) => entry(1, index + 1)) });
  await written.close();
  const store = openLog(path);
  return { store, path };
}

it.each([1, 8, 9, LINES])('a bit flipped in line %i after a read fails the next read', async (eventId) => {
  const { store, path } = await filled();
  expect((await store.log.readPage(1, 0, 1_000)).count).toBe(LINES);
  flipBit(path, { column: 'line', position: eventId, bit: randomInt(1_000) });
  await expect(store.log.readPage(1, 0, 1_000)).rejects.toThrow(`event ${eventId} fails its checksum`);
  if (eventId > 1) expect((await store.log.readPage(1, 0, eventId - 1)).count).toBe(eventId - 1);
  expect(store.log.damagedStreams.get(1)).toBeInstanceOf(StreamDamaged);
});
