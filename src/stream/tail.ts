// A consumer as a cursor over the log: replay and live are one loop, and being behind costs nothing but the reading.
import type { Forum } from '../forum/forum.ts';
import type { Page } from '../log/log.ts';
import { isFull, readersTurn } from '../log/pages.ts';
import { Feed } from './feed.ts';

export class Tail {
  readonly #feed: Feed;
  readonly #onStop: () => void;
  #cursor: number;
  #wake: (() => void) | undefined;
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

  /** Yields the lines of every event after the cursor, in order, each once; then the live ones, until stop(). */
  async *pages(): AsyncGenerator<Page> {
    while (!this.#isStopped) {
      const { version } = this.#feed;
      const page = await this.#feed.read(this.#cursor);
      if (page.count === 0) {
        // Not suspended between this check and the wait: no growth is slept through.
        if (this.#feed.version === version) await this.#grown();
        continue;
      }
      this.#cursor += page.count;
      yield page;
      // A socket that takes whatever it is given would otherwise have the process to itself.
      if (isFull(page)) await readersTurn();
    }
  }

  wake(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#feed.remove(this);
    this.#onStop();
    this.wake();
  }

  #grown(): Promise<void> | undefined {
    if (this.#isStopped) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
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
