// Bounds the bytes that all readers of one log read in a turn of the event loop, so that no read or fold blocks the process. Readers wait
// in two lanes, so that a single read does not wait for readers of whole logs.

/** `foreground`: for a fold or a short response. `bulk`: pages of history. */
export type Lane = 'foreground' | 'bulk';

/** No more pages are read in a turn of the event loop once they reach this size. */
const BYTES_PER_TURN = 65_536;
/** While readers wait in both lanes, every fifth page is a bulk page. */
const PAGES_PER_BULK_PAGE = 5;

export class ReadQueue {
  readonly #waiting: Readonly<Record<Lane, (() => void)[]>> = { foreground: [], bulk: [] };
  #isTurnDue = false;
  #isReading = false;
  #bytesLeft = BYTES_PER_TURN;
  #pages = 0;

  /** Resolves when the caller may read a page: immediately if nobody else reads in this turn of the event loop, otherwise later. */
  wait(lane: Lane): Promise<void> {
    if (this.#isReading) return new Promise((resolve) => this.#waiting[lane].push(resolve));
    this.#isReading = true;
    this.#beginTurnSoon();
    return Promise.resolve();
  }

  /** Reports the size of the page that was read, and lets the next reader use the rest of the turn. Without this call the turn ends. */
  done(bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft <= 0) return;
    const { foreground, bulk } = this.#waiting;
    const isBulk = foreground.length === 0 || (bulk.length > 0 && ++this.#pages % PAGES_PER_BULK_PAGE === 0);
    const next = (isBulk ? bulk : foreground).shift();
    this.#isReading = next !== undefined;
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
      this.done(0);
    });
  }
}
