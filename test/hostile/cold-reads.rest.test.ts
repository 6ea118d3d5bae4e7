// Reads and moves of chambers that are not in memory do not wait behind readers of whole logs.
import { connect } from 'node:net';
import { expect, it, vi } from 'vitest';
import { appendDebates } from '../kit/debates.ts';
import { call, debating, run } from '../kit/service.ts';
import { atEnd, temporaryDatabase } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';

const BULK_READERS = 200;
const BULK_EVENTS = 300;
/** More than one page of a fold, and no snapshot. */
const COLD_EVENTS = 900;
const SLOW = { timeout: 120_000 };

it(
  'with 200 bulk readers, a cold read and a cold move are served before every reader has received one more page',
  SLOW,
  async () => {
    const path = temporaryDatabase();
    const filling = await run({ DATABASE_PATH: path });
    const bulk = await debating(filling);
    await appendDebates(filling, {
      did: bulk.by.did,
      chamberId: bulk.id,
      count: BULK_EVENTS,
      bulk: 'x'.repeat(60_000),
    });
    const read = await debating(filling);
    await appendDebates(filling, { did: read.by.did, chamberId: read.id, count: COLD_EVENTS });
    const moved = await debating(filling);
    await appendDebates(filling, { did: moved.by.did, chamberId: moved.id, count: COLD_EVENTS });
    await filling.stop();
    const running = await run({ DATABASE_PATH: path }, filling.clock);
    const reading = vi.spyOn(running.service.forum.store.log, 'readPage');
    const pagesOf = (id: number) => reading.mock.calls.filter(([stream]) => stream === id).length;
    for (let reader = 0; reader < BULK_READERS; reader++)
      readInBulk(running.url, `/chambers/${bulk.id}/events?limit=10000`);
    await eventually(() => expect(pagesOf(bulk.id)).toBeGreaterThan(BULK_READERS + BULK_EVENTS), 20_000);

    const requests = [
      { id: read.id, send: () => call(running, read.by, ['GET', `/chambers/${read.id}`]) },
      {
        id: moved.id,
        send: () => call(running, moved.by, ['POST', `/chambers/${moved.id}/debate`, { comment: 'cold' }]),
      },
    ];
    for (const { id, send } of requests) {
      const before = pagesOf(bulk.id);
      await send();
      expect(pagesOf(id)).toBeGreaterThan(2);
      expect(pagesOf(bulk.id) - before).toBeLessThan(BULK_READERS);
    }
  },
);

/** Requests the log repeatedly. */
function readInBulk(url: string, path: string): void {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  socket.on('data', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(10));
  atEnd(() => void socket.destroy());
}
