import { expect, it } from 'vitest';
import { openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { describeLists, describePort, describeTree } from '../conformance.ts';
import { entry } from '../entries.ts';

async function open() {
  const url = await temporaryPostgres();
  let store = await openStore(url);
  const reopen = async () => {
    await store.close();
    store = await openStore(url);
    return store;
  };
  return { store, reopen };
}

describePort(open);
describeLists(open);
describeTree(open);

it('events that need several placing transactions get an order without gaps that keeps each chamber’s order', async () => {
  const store = await openStore(await temporaryPostgres());
  const chambers = [1, 2, 3];
  for (let done = 0; done < 9_000; done += 1_000) {
    const eventIds = Array.from({ length: 1_000 }, (_, index) => done + index + 1);
    await store.log.append({
      entries: chambers.flatMap((chamber) => eventIds.map((eventId) => entry(chamber, eventId))),
    });
  }
  expect(await store.log.lastPlace()).toBe(27_000);
  const heads = new Map(chambers.map((chamber) => [chamber, 0]));
  for (let place = 0; place < 27_000; ) {
    const { ndjson, count, last } = await store.log.readAll(place, 10_000);
    expect(last).toBe(place + count);
    place = last;
    for (const line of ndjson.toString().trimEnd().split('\n')) {
      const { chamberId, eventId } = JSON.parse(line);
      if (heads.get(chamberId) !== eventId - 1)
        throw new Error(`event ${eventId} of chamber ${chamberId} is out of order`);
      heads.set(chamberId, eventId);
    }
  }
  expect([...heads.values()]).toEqual([9_000, 9_000, 9_000]);
});
