// Reading on from a cursor, page by page: pages are sized by what the lines weigh, so that no read holds up the process.
import type { ForumLog, Page, StreamId } from './log.ts';

export const PAGE_BYTES = 262_144;
export const PAGE_LINES_MAX = 1_000;
const PAGE_LINES_FIRST = 64;

export interface PageRange {
  readonly stream: StreamId;
  /** Exclusive. */
  readonly after: number;
  /** Inclusive: nothing past it is read. */
  readonly until: number;
}

/** Yields the pages of the range in order. */
export async function* readPages(log: ForumLog, { stream, after, until }: PageRange): AsyncGenerator<Page> {
  let cursor = after;
  let limit = PAGE_LINES_FIRST;
  while (cursor < until) {
    const page = await log.readPage(stream, cursor, Math.min(limit, until - cursor));
    if (page.count === 0) return;
    yield page;
    cursor += page.count;
    limit = nextLimit(page);
  }
}

/** How many lines like those of the page make about PAGE_BYTES. */
export function nextLimit({ ndjson, count }: Page): number {
  return Math.max(1, Math.min(PAGE_LINES_MAX, Math.floor((PAGE_BYTES * count) / ndjson.length)));
}
