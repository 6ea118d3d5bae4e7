// A database's clock was wrong and is right again: the log's time is reset, and streams in the future wait.
import { beforeEach, describe, expect, it } from 'vitest';
import { copyLog, writeWholeLog } from '../../../src/log/open-log.ts';
import { resetClock } from '../../../src/log/sql/maintenance.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { deadlinesFrom } from '../../kit/chambers.ts';
import { TestClock } from '../../kit/clock.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';

const DAY = 86_400_000;

let url: string;
let ahead: number;

/** Chamber 1 was written at the right time, chamber 2 while the clock was two days ahead. */
beforeEach(async () => {
  url = await temporaryPostgres();
  const clock = new TestClock();
  clock.set(Date.now());
  const service = new TestService({ store: await openStore(url), clock });
  const by = await service.agent();
  const create = () =>
    service.must('POST', '/chambers', { by, body: { name: 'Test', ...deadlinesFrom(clock.read()) } });
  await create();
  clock.advance(2 * DAY);
  await create();
  ahead = clock.read();
  await service.forum.persistClock();
  await service.close();
  // This is what a service does when it stops.
  await execute(url, 'DELETE FROM leases');
});

describe('a log whose time is in the future', () => {
  it('a log whose time is in the future is reset to the database’s clock, and the reset names the waiting streams', async () => {
    expect((await openAgain()).lastAt).toBe(ahead);
    const reset = await resetTime();
    expect(reset).toEqual({ from: ahead, waiting: [{ stream: 2, until: ahead }] });
    const { lastAt } = await openAgain();
    expect(Math.abs(lastAt - Date.now())).toBeLessThan(60_000);
    await expect(resetTime()).rejects.toThrow(/not in the future/);
  });

  it('a copy keeps the time of a log whose time is in the future', async () => {
    await resetTime();
    const copy = temporaryDatabase();
    await copyLog(url, copy);
    const store = openSqliteStore(copy);
    expect(Math.abs(store.meta.lastAt - Date.now())).toBeLessThan(60_000);
    await store.close();
  });

  it('the log’s time is not reset while a node runs', async () => {
    const node = await openStore(url);
    const lease = node.nodes.lease('publisher');
    await expect.poll(() => lease.token).toBeDefined();
    await expect(resetTime()).rejects.toThrow(/stop all nodes first/);
    await lease.release();
    await resetTime();
  });
});

async function openAgain(): Promise<{ readonly lastAt: number }> {
  const store = await openStore(url);
  const { lastAt } = store.meta;
  await store.close();
  return { lastAt };
}

function resetTime() {
  return writeWholeLog(url, (log) => resetClock(log));
}
