// Reading from a cursor, page by page: pages are bounded in bytes and readers take turns, so that no read blocks the process,
// however long the log is and however many readers it has.
import { setImmediate as nextTick } from 'node:timers/promises';
import type { ForumLog, Page, StreamId } from './log.ts';

/** A page ends with the line that reaches this size. */
export const PAGE_BYTES = 262_144;
export const PAGE_LINES_MAX = 1_000;

export interface PageRange {
  readonly stream: StreamId;
  /** Exclusive. */
  readonly after: number;
  /** Inclusive. */
  readonly until: number;
}

/** Yields the pages of the range in order. */
export async function* readPages(log: ForumLog, { stream, after, until }: PageRange): AsyncGenerator<Page> {
  let cursor = after;
  while (cursor < until) {
    const page = await log.readPage(stream, cursor, Math.min(PAGE_LINES_MAX, until - cursor));
    if (page.count === 0) return;
    cursor += page.count;
    yield page;
    if (cursor < until) await readersTurn();
  }
}

/** Whether the page reached a limit, so that more lines may follow. */
export function isFull({ ndjson, count }: Page): boolean {
  return count === PAGE_LINES_MAX || ndjson.length >= PAGE_BYTES;
}

let lastTurn: Promise<void> = Promise.resolve();

/** Resolves in a turn of the event loop of its own: one page is read in each, and other work comes between. */
export function readersTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => nextTick());
  return lastTurn;
}
