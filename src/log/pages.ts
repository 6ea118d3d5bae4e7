// Reading on from a cursor, page by page: pages are bounded by what the lines weigh, and readers take turns, so that no
// read holds up the process, however long the log is and however many read it.
import { setImmediate as nextTick } from 'node:timers/promises';
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
    cursor += page.count;
    yield page;
    if (cursor < until) await readersTurn();
  }
}

/** Whether there was no room for more: a reader's way through history, rather than its head. */
export function isFull({ ndjson, count }: Page): boolean {
  return count === PAGE_LINES_MAX || ndjson.length >= PAGE_BYTES;
}

let lastTurn: Promise<void> = Promise.resolve();

/** Resolves in a turn of the event loop that no other reader of history is given: each turn reads one page and then serves. */
export function readersTurn(): Promise<void> {
  lastTurn = lastTurn.then(() => nextTick());
  return lastTurn;
}
