// One chamber's log as its consumers see it: those at the same cursor near the head are given the very same page.
import type { Forum } from '../forum/forum.ts';
import type { Page } from '../log/log.ts';
import { isFull, PAGE_LINES_MAX } from '../log/pages.ts';
import type { Tail } from './tail.ts';

/** How many consumers are woken before the process does something else. */
const WAKES_PER_TICK = 256;

export class Feed {
  readonly #forum: Forum;
  readonly #chamberId: number;
  readonly #tails = new Set<Tail>();
  readonly #tailPages = new Map<number, Promise<Page>>();
  readonly #unfollow: () => void;
  /** Rises whenever the log has grown. */
  version = 0;

  constructor(forum: Forum, chamberId: number) {
    this.#forum = forum;
    this.#chamberId = chamberId;
    this.#unfollow = forum.follow(chamberId, () => this.#grow());
  }

  get isEmpty(): boolean {
    return this.#tails.size === 0;
  }

  add(tail: Tail): void {
    this.#tails.add(tail);
  }

  /** Ends following the chamber with the last of its consumers. */
  remove(tail: Tail): void {
    this.#tails.delete(tail);
    if (this.isEmpty) this.#unfollow();
  }

  async read(after: number): Promise<Page> {
    const shared = this.#tailPages.get(after);
    if (shared !== undefined) return shared;
    const reading = this.#forum.log.readPage(this.#chamberId, after, PAGE_LINES_MAX);
    this.#tailPages.set(after, reading);
    const page = await reading;
    // A full page is history, which is kept for nobody.
    if (isFull(page)) this.#tailPages.delete(after);
    return page;
  }

  async lag(): Promise<number> {
    const head = await this.#forum.log.lastEventId(this.#chamberId);
    let slowest = head;
    for (const { cursor } of this.#tails) slowest = Math.min(slowest, cursor);
    return head - slowest;
  }

  stop(): void {
    for (const tail of this.#tails) tail.stop();
  }

  #grow(): void {
    this.version++;
    this.#tailPages.clear();
    this.#wakeSome(this.#tails.values());
  }

  #wakeSome(tails: IterableIterator<Tail>): void {
    for (let woken = 0; woken < WAKES_PER_TICK; woken++) {
      const next = tails.next();
      if (next.done) return;
      next.value.wake();
    }
    setImmediate(() => this.#wakeSome(tails));
  }
}
