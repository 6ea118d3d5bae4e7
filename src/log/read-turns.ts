// One full page is read in a turn of the event loop, so that no read or fold blocks the process. Readers wait in two lanes: a single
// read does not wait for readers of whole logs.

/** `foreground`: for a fold or a short response. `bulk`: pages of history. */
export type Lane = 'foreground' | 'bulk';

/** A turn of the event loop ends with the page that reaches this size. */
const BYTES_PER_TURN = 65_536;
/** While readers wait in both lanes, one page in so many is read in bulk. */
const PAGES_PER_BULK_PAGE = 5;

/** The turns that the readers of one log take. */
export class ReadTurns {
  readonly #waiting: Readonly<Record<Lane, (() => void)[]>> = { foreground: [], bulk: [] };
  #isTurnDue = false;
  /** A reader that does not pass the turn on delays the others only until the next one begins. */
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

  /** The caller has read a page of so many bytes; the next reader shares what is left of the turn. */
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
