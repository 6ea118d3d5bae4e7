// A consumer as a cursor over the log: replay and live are one loop, and being behind costs nothing but the reading.
import type { Forum } from '../forum/forum.ts';
import type { Page } from '../log/log.ts';
import { isFull, readersTurn } from '../log/pages.ts';
import { Feed } from './feed.ts';

export interface Consumer {
  /** Takes the next lines; a promise says when there is room for more. */
  readonly take: (page: Page) => Promise<void> | undefined;
  /** Nothing follows: the tail was stopped or, with an error, failed. */
  readonly end: (error?: unknown) => void;
}

export class Tail {
  readonly #feed: Feed;
  readonly #onStop: () => void;
  #consumer: Consumer | undefined;
  #cursor: number;
  /** At the head and with room for more. */
  #isWaiting = false;
  #isStopped = false;

  constructor(feed: Feed, after: number, onStop: () => void) {
    this.#feed = feed;
    this.#cursor = after;
    this.#onStop = onStop;
    feed.add(this);
  }

  /** The last event handed out. */
  get cursor(): number {
    return this.#cursor;
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Hands out the lines of every event after the cursor, in order, each once; then the live ones, until stop(). */
  follow(consumer: Consumer): void {
    this.#consumer = consumer;
    void this.#readOn();
  }

  /** The log has grown: who waits is handed what the feed has read already, without being suspended. */
  wake(): void {
    if (!this.#isWaiting) return;
    const page = this.#feed.known(this.#cursor);
    if (page?.count === 0) return;
    const taking = page && this.#handOut(page);
    if (page === undefined || taking !== undefined || isFull(page)) void this.#readOn(taking);
  }

  stop(error?: unknown): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#isWaiting = false;
    this.#feed.remove(this);
    this.#onStop();
    this.#consumer?.end(error);
  }

  async #readOn(taking?: Promise<void>): Promise<void> {
    this.#isWaiting = false;
    try {
      await taking;
      while (!this.#isStopped && !this.#isWaiting) await this.#readPage();
    } catch (error) {
      this.stop(error);
    }
  }

  async #readPage(): Promise<void> {
    const { version } = this.#feed;
    const page = await this.#feed.read(this.#cursor);
    if (this.#isStopped) return;
    if (page.count === 0) {
      // Not suspended between this check and the wait: no growth is slept through.
      this.#isWaiting = this.#feed.version === version;
      return;
    }
    const isHistory = isFull(page);
    // Not held while the consumer makes room: it may stand still for hours.
    await this.#handOut(page);
    // A socket that takes whatever it is given would otherwise have the process to itself.
    if (isHistory) await readersTurn();
  }

  #handOut(page: Page): Promise<void> | undefined {
    this.#cursor += page.count;
    try {
      return this.#consumer?.take(page);
    } catch (error) {
      this.stop(error);
      return undefined;
    }
  }
}

export class Tails {
  readonly #forum: Forum;
  readonly #feeds = new Map<number, Feed>();

  constructor(forum: Forum) {
    this.#forum = forum;
  }

  /** A consumer of the chamber's events after `after`. */
  open(chamberId: number, after: number, onStop = () => {}): Tail {
    const feed = this.#feeds.get(chamberId) ?? new Feed(this.#forum, chamberId);
    this.#feeds.set(chamberId, feed);
    return new Tail(feed, after, () => {
      if (feed.isEmpty && this.#feeds.get(chamberId) === feed) this.#feeds.delete(chamberId);
      onStop();
    });
  }

  /** Events that the consumer farthest behind its chamber's head has still to be handed. */
  async lag(): Promise<number> {
    let lag = 0;
    for (const feed of this.#feeds.values()) lag = Math.max(lag, await feed.lag());
    return lag;
  }

  /** Ends every consumer's pages. */
  stop(): void {
    for (const feed of this.#feeds.values()) feed.stop();
  }
}
