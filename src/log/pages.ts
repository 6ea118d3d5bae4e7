// Reading from a cursor, page by page: pages are bounded in bytes and readers take turns in two lanes, so that no read blocks
// the process, and a single read does not wait for readers of whole logs.
import type { ForumLog, Page, StreamId } from './log.ts';

/** A page ends with the line that reaches this size. */
export const PAGE_BYTES = 262_144;
export const PAGE_LINES_MAX = 1_000;

/** `foreground`: for a fold or a short response. `bulk`: pages of history. */
export type Lane = 'foreground' | 'bulk';

/** Short pages: folding a line takes several times as long as sending it. */
const LINES_PER_PAGE: Readonly<Record<Lane, number>> = { foreground: 250, bulk: PAGE_LINES_MAX };

export interface PageRange {
  readonly stream: StreamId;
  /** Exclusive. */
  readonly after: number;
  /** Inclusive. */
  readonly until: number;
  readonly lane: Lane;
}

/** Yields the pages of the range in order. */
export async function* readPages(log: ForumLog, { stream, after, until, lane }: PageRange): AsyncGenerator<Page> {
  let cursor = after;
  while (cursor < until) {
    await takeTurn(lane);
    const page = await log.readPage(stream, cursor, Math.min(LINES_PER_PAGE[lane], until - cursor));
    if (page.count === 0) return;
    cursor += page.count;
    yield page;
  }
}

/** The pages over all chambers after a place: so many lines, or up to the end. */
export async function* readAllPages(
  log: ForumLog,
  { after, limit, lane }: Pick<PageRange, 'after' | 'lane'> & { readonly limit: number },
): AsyncGenerator<Page> {
  let cursor = after;
  for (let lines = limit; lines > 0; ) {
    await takeTurn(lane);
    const page = await log.readAll(cursor, Math.min(LINES_PER_PAGE[lane], lines));
    if (page.last === cursor) return;
    cursor = page.last;
    lines -= page.count;
    if (page.count > 0) yield page;
  }
}

/** Pages that are read in one turn of the event loop: the lanes share it, and a reader in one never waits for the other. */
const PAGES_PER_TURN: Readonly<Record<Lane, number>> = { foreground: 4, bulk: 1 };

/** While a lane has a page left in this turn, no read waits in it. */
const left = { ...PAGES_PER_TURN };
const waiting: Readonly<Record<Lane, (() => void)[]>> = { foreground: [], bulk: [] };
let isTurnDue = false;

/** Resolves when the caller may read a page: at once while this turn of the event loop has one left, else in a later one. */
export function takeTurn(lane: Lane): Promise<void> {
  beginTurnSoon();
  if (left[lane] === 0) return new Promise((resolve) => waiting[lane].push(resolve));
  left[lane]--;
  return Promise.resolve();
}

function beginTurnSoon(): void {
  if (isTurnDue) return;
  isTurnDue = true;
  setImmediate(beginTurn);
}

function beginTurn(): void {
  isTurnDue = false;
  for (const lane of ['foreground', 'bulk'] as const) {
    const next = waiting[lane].splice(0, PAGES_PER_TURN[lane]);
    left[lane] = PAGES_PER_TURN[lane] - next.length;
    for (const resolve of next) resolve();
    if (next.length > 0) beginTurnSoon();
  }
}
