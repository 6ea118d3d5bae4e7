// Reading from a cursor, page by page: pages are bounded in bytes, and one full page is read in a turn of the event loop, so that
// no read or fold blocks the process. Readers wait in two lanes: a single read does not wait for readers of whole logs.
import { currentPayer, workFor } from '../process/main-thread.ts';
import type { EventLog, Page } from './log.ts';
import type { StreamId } from './stream-id.ts';

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
export async function* readPages(log: EventLog, { stream, after, until, lane }: PageRange): AsyncGenerator<Page> {
  let cursor = after;
  while (cursor < until) {
    const payer = currentPayer();
    await log.turns.take(lane);
    workFor(payer);
    const page = await log.readPage(stream, cursor, Math.min(LINES_PER_PAGE[lane], until - cursor));
    workFor(payer);
    log.turns.pass(page.ndjson.length);
    if (page.count === 0) return;
    cursor += page.count;
    yield page;
  }
}

/** The pages over all chambers after a place: so many lines, or up to the end. */
export async function* readAllPages(
  log: EventLog,
  { after, limit, lane }: Pick<PageRange, 'after' | 'lane'> & { readonly limit: number },
): AsyncGenerator<Page> {
  let cursor = after;
  for (let lines = limit; lines > 0; ) {
    const payer = currentPayer();
    await log.turns.take(lane);
    workFor(payer);
    const page = await log.readAll(cursor, Math.min(LINES_PER_PAGE[lane], lines));
    workFor(payer);
    log.turns.pass(page.ndjson.length);
    if (page.last === cursor) return;
    cursor = page.last;
    lines -= page.count;
    if (page.count > 0) yield page;
  }
}

/** A turn of the event loop ends with the page that reaches this size. */
const BYTES_PER_TURN = 65_536;
/** While readers wait in both lanes, one page in so many is read in bulk. */
const PAGES_PER_BULK_PAGE = 5;

/** The turns that the readers of one log take. */
export class ReadTurns {
  readonly #waiting: Readonly<Record<Lane, (() => void)[]>> = { foreground: [], bulk: [] };
  #isTurnDue = false;
  /** By a reader that has not passed it on; the next turn begins in any case. */
  #isTaken = false;
  #bytesLeft = BYTES_PER_TURN;
  #pages = 0;

  /** Resolves when the caller may read a page: at once if nobody else does in this turn of the event loop, else later. */
  take(lane: Lane): Promise<void> {
    if (this.#isTaken) return new Promise((resolve) => this.#waiting[lane].push(resolve));
    this.#isTaken = true;
    this.#beginTurnSoon();
    return Promise.resolve();
  }

  /** After a page of so many bytes: the next reader shares what is left of the turn. */
  pass(bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft <= 0) return;
    const { foreground, bulk } = this.#waiting;
    const isBulk = foreground.length === 0 || (bulk.length > 0 && ++this.#pages % PAGES_PER_BULK_PAGE === 0);
    const next = (isBulk ? bulk : foreground).shift();
    this.#isTaken = next !== undefined;
    if (next === undefined) return;
    this.#beginTurnSoon();
    next();
  }

  #beginTurnSoon(): void {
    if (this.#isTurnDue) return;
    this.#isTurnDue = true;
    setImmediate(() => {
      this.#isTurnDue = false;
      this.#bytesLeft = BYTES_PER_TURN;
      this.pass(0);
    });
  }
}
