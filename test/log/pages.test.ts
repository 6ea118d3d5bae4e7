// Reading page by page: whole, bounded by weight, and in turns.
import { describe, expect, it } from 'vitest';
import { PAGE_BYTES, readPages } from '../../src/log/pages.ts';
import { openSqliteLog, type SqliteLog } from '../../src/log/sqlite/sqlite-log.ts';
import { atEnd } from '../kit/temporary.ts';
import { entry } from './entries.ts';

const LINES = 10;
/** Two fill a page. */
const LINE = Buffer.alloc(PAGE_BYTES / 2, 'x');

describe('reading page by page', () => {
  it('returns every line once, and ends a page with the line that fills it', async () => {
    const log = await heavyLog();
    const counts: number[] = [];
    for await (const { count } of readPages(log, { stream: 1, after: 1, until: LINES, lane: 'bulk' }))
      counts.push(count);
    expect(counts).toEqual([2, 2, 2, 2, 1]);
  });

  it('lets no two bulk readers read in the same turn of the event loop', async () => {
    const log = await heavyLog();
    const turns = countTurns();
    const readers = Array.from({ length: 3 }, async () => {
      const seen: number[] = [];
      for await (const _page of readPages(log, { stream: 1, after: 0, until: LINES, lane: 'bulk' }))
        seen.push(turns.passed());
      return seen;
    });
    const seen = (await Promise.all(readers)).flat();
    turns.stop();
    expect(seen).toHaveLength(15);
    expect(new Set(seen).size).toBe(15);
  });

  it('lets a foreground reader read at once, however many bulk readers wait', async () => {
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

async function heavyLog(): Promise<SqliteLog> {
  const log = openSqliteLog(':memory:');
  atEnd(() => log.close());
  await log.append(Array.from({ length: LINES }, (_, index) => entry(1, index + 1, { line: LINE })));
  return log;
}

function countTurns() {
  let passed = 0;
  let next = setImmediate(function count() {
    passed++;
    next = setImmediate(count);
  });
  return { passed: () => passed, stop: () => clearImmediate(next) };
}
