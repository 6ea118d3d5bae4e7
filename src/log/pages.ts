// Reading on from a cursor, page by page: pages are bounded by what the lines weigh, so that no read holds up the process.
import type { ForumLog, Page, StreamId } from './log.ts';

/** A page ends with the line that reaches it. */
export const PAGE_BYTES = 262_144;
export const PAGE_LINES_MAX = 1_000;

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
  while (cursor < until) {
    const page = await log.readPage(stream, cursor, Math.min(PAGE_LINES_MAX, until - cursor));
    if (page.count === 0) return;
    yield page;
    cursor += page.count;
  }
}
