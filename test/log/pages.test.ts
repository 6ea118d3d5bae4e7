// Reads page by page: complete, bounded by size, and in turns.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { EventLog } from '../../src/log/log.ts';
import { PAGE_BYTES, readPages } from '../../src/log/pages.ts';
import type { Lane } from '../../src/log/read-queue.ts';
import { entry, openLog } from './entries.ts';

const LINES = 10;
/** Two lines fill a page. */
const LINE = Buffer.alloc(PAGE_BYTES / 2, 'x');

describe('reading page by page', () => {
  it('a read returns every line once, and ends a page with the line that fills it', async () => {
    const log = await heavyLog();
    const counts: number[] = [];
    for await (const { count } of readPages(log, { stream: 1, after: 1, until: LINES, lane: 'bulk' }))
      counts.push(count);
    expect(counts).toEqual([2, 2, 2, 2, 1]);
  });

  it.each(['foreground', 'bulk'] as const)(
    'a read takes at most one full page in a turn of the lane %s',
    async (lane) => {
      const log = await heavyLog();
      const turns = await countTurns();
      const readers = Array.from({ length: 3 }, async () => {
        const seen: number[] = [];
        for await (const _page of readPages(log, { stream: 1, after: 0, until: LINES, lane }))
          seen.push(turns.passed());
        return seen;
      });
      const seen = (await Promise.all(readers)).flat();
      turns.stop();
      expect(seen).toHaveLength(15);
      expect(new Set(seen).size).toBe(15);
    },
  );

  it('a read takes several short pages in the same turn', async () => {
    const log = await heavyLog();
    const turns = await countTurns();
    const readers = Array.from({ length: 8 }, async (_, reader) => {
      await readPages(log, { stream: 2, after: reader, until: reader + 1, lane: 'foreground' }).next();
      return turns.passed();
    });
    const seen = await Promise.all(readers);
    turns.stop();
    expect(new Set(seen).size).toBe(1);
  });

  it('a bulk reader gets a page after four others, however many foreground readers wait', async () => {
    const log = await heavyLog();
    let bulkPages = 0;
    const read = async (lane: Lane, seen: () => void) => {
      for await (const _page of readPages(log, { stream: 1, after: 0, until: LINES, lane })) seen();
    };
    const bulk = read('bulk', () => bulkPages++);
    await Promise.all(Array.from({ length: 4 }, () => read('foreground', () => {})));
    expect(bulkPages).toBeGreaterThanOrEqual(4);
    await bulk;
  });

  it('a foreground reader reads at once, however many bulk readers wait', async () => {
    const log = await heavyLog();
    let bulkPages = 0;
    const bulk = Array.from({ length: 100 }, async () => {
      for await (const _page of readPages(log, { stream: 1, after: 0, until: LINES, lane: 'bulk' })) bulkPages++;
    });
    const counts: number[] = [];
    for await (const { count } of readPages(log, { stream: 1, after: 0, until: LINES, lane: 'foreground' })) {
      counts.push(count);
    }
    expect(counts).toEqual([2, 2, 2, 2, 2]);
    expect(bulkPages).toBeLessThan(10);
    await Promise.all(bulk);
    expect(bulkPages).toBe(500);
  });
});

async function heavyLog(): Promise<EventLog> {
  const store = openLog();
  await store.log.append({ entries: Array.from({ length: LINES }, (_, index) => entry(1, index + 1, { line: LINE })) });
  await store.log.append({ entries: Array.from({ length: LINES }, (_, index) => entry(2, index + 1)) });
  return store.log;
}

async function countTurns() {
  // Wait until the turns of earlier reads are over.
  await nextTurn();
  let passed = 0;
  let next = setImmediate(function count() {
    passed++;
    next = setImmediate(count);
  });
  return { passed: () => passed, stop: () => clearImmediate(next) };
}
