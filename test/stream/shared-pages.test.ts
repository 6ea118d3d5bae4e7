// Tests the pages of history that all readers share: a page is immutable if no line can be added to it.
import { beforeEach, describe, expect, it } from 'vitest';
import { recordCommit } from '../kit/chambers.ts';
import { HOUR } from '../kit/clock.ts';
import { appendDebates } from '../kit/debates.ts';
import { createChamber, debating, newAgent, type Running, run } from '../kit/service.ts';

const IMMUTABLE = 'public, max-age=86400, immutable';

let running: Running;

beforeEach(async () => {
  running = await run();
});

/** Opens a chamber in DEBATE with this many events. */
async function chamberOf(events: number): Promise<{ readonly id: number; readonly path: string }> {
  const { by, id } = await debating(running);
  await appendDebates(running, { did: by.did, chamberId: id, count: events - 2 });
  return { id, path: `/chambers/${id}/events?log=${running.service.forum.store.log.logId}` };
}

async function settle(id: number): Promise<void> {
  running.clock.advance(5 * HOUR);
  await recordCommit(running.service.forum, id);
}

async function page(path: string) {
  const response = await fetch(running.url + path);
  const lines = (await response.text()).split('\n').length - 1;
  const { headers, status } = response;
  return { status, lines, caching: headers.get('cache-control'), end: headers.get('stream-end') };
}

describe('a shared page of history', () => {
  it('a shared page is immutable once it is full', async () => {
    const { path } = await chamberOf(2_500);
    const full = { status: 200, lines: 1_000, caching: IMMUTABLE, end: null };
    expect(await page(`${path}&after=0&limit=1000`)).toEqual(full);
    expect(await page(`${path}&after=1000&limit=1000`)).toEqual(full);
    expect(await page(path)).toEqual(full);
    expect(await page(`${path}&after=2000&limit=1000`)).toEqual({ ...full, lines: 500, caching: null });
  });

  it('every shared page of a chamber that is over is immutable, and the last one has Stream-End', async () => {
    const { id, path } = await chamberOf(1_500);
    await settle(id);
    const first = { status: 200, lines: 1_000, caching: IMMUTABLE, end: null };
    expect(await page(`${path}&after=0&limit=1000`)).toEqual(first);
    expect(await page(`${path}&after=1000&limit=1000`)).toEqual({ ...first, lines: 501, end: 'true' });
  });

  it('a full page can be the last one of a chamber that is over', async () => {
    const { id, path } = await chamberOf(999);
    await settle(id);
    expect(await page(`${path}&after=0&limit=1000`)).toMatchObject({ lines: 1_000, caching: IMMUTABLE, end: 'true' });
    expect(await page(`${path}&after=1000&limit=1000`)).toMatchObject({ lines: 0, caching: IMMUTABLE, end: 'true' });
  });

  it('a page that is not full is not immutable until the root is on the chain', async () => {
    const by = await newAgent(running);
    const id = await createChamber(running, by);
    const path = `/chambers/${id}/events?log=${running.service.forum.store.log.logId}&after=0&limit=1000`;
    expect(await page(path)).toMatchObject({ lines: 1, caching: null, end: null });
    running.clock.advance(6 * HOUR);
    expect(await page(path)).toMatchObject({ lines: 1, caching: null, end: null });
    await recordCommit(running.service.forum, id);
    expect(await page(path)).toMatchObject({ lines: 2, caching: IMMUTABLE, end: 'true' });
  });

  it.each([
    ['without the log', (path: string) => `${path.replace(/log=\w+/, '')}&after=0&limit=1000`.replace('?&', '?')],
    ['with another limit', (path: string) => `${path}&after=0&limit=999`],
    ['with a larger limit', (path: string) => `${path}&after=0&limit=2000`],
    ['after another event', (path: string) => `${path}&after=1&limit=1000`],
  ])('a page %s is not immutable', async (_, change) => {
    const { id, path } = await chamberOf(1_999);
    await settle(id);
    expect(await page(change(path))).toMatchObject({ status: 200, caching: null, end: null });
  });

  it('a page of another log is rejected with an uncacheable 409', async () => {
    const { path } = await chamberOf(10);
    expect(await page(path.replace(/log=\w+/, `log=${'0'.repeat(32)}`))).toMatchObject({ status: 409, caching: null });
  });

  it('a page of an account is not immutable', async () => {
    const by = await newAgent(running);
    const { logId } = running.service.forum.store.log;
    const path = `/agents/${by.did}/events?log=${logId}&after=0&limit=1000`;
    expect(await page(path)).toMatchObject({ status: 200, caching: null, end: null });
  });
});
