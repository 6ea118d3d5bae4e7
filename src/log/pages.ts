// Reads from a cursor, page by page: pages are bounded in bytes, and readers take turns.
import type { EventLog, Page } from './log.ts';
import type { Lane } from './read-queue.ts';
import type { StreamId } from './stream-id.ts';

/** A page ends with the line that reaches this size. */
export const PAGE_BYTES = 262_144;
export const PAGE_LINES_MAX = 1_000;

/** Foreground pages are shorter, because folding a line takes several times as long as sending it. */
const LINES_PER_PAGE: Readonly<Record<Lane, number>> = { foreground: 250, bulk: PAGE_LINES_MAX };

export interface PageRange {
  readonly stream: StreamId;
  /** Exclusive. */
  readonly after: number;
  /** Inclusive. */
  readonly until: number;
  readonly lane: Lane;
}

export async function* readPages(log: EventLog, { stream, after, until, lane }: PageRange): AsyncGenerator<Page> {
  let cursor = after;
  while (cursor < until) {
    await log.readQueue.wait(lane);
    const page = await log.readPage(stream, cursor, Math.min(LINES_PER_PAGE[lane], until - cursor));
    log.readQueue.done(page.ndjson.length);
    if (page.count === 0) return;
    cursor += page.count;
    yield page;
  }
}

/** Yields pages over all chambers after the place `after`, at most `limit` lines in total. */
export async function* readAllPages(
  log: EventLog,
  { after, limit, lane }: Pick<PageRange, 'after' | 'lane'> & { readonly limit: number },
): AsyncGenerator<Page> {
  let cursor = after;
  for (let lines = limit; lines > 0; ) {
    await log.readQueue.wait(lane);
    const page = await log.readAll(cursor, Math.min(LINES_PER_PAGE[lane], lines));
    log.readQueue.done(page.ndjson.length);
    if (page.last === cursor) return;
    cursor = page.last;
    lines -= page.count;
    if (page.count > 0) yield page;
  }
}
