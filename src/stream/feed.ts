// One chamber's log as its consumers see it: those at the same cursor near the head are given the very same page.
import { setImmediate as nextTick } from 'node:timers/promises';
import type { Forum } from '../forum/forum.ts';
import type { Page } from '../log/log.ts';
import { isFull, PAGE_LINES_MAX } from '../log/pages.ts';
import type { Tail } from './tail.ts';

/** How many consumers are woken before the process does something else. */
const WAKES_PER_TICK = 64;

export class Feed {
  readonly #forum: Forum;
  readonly #chamberId: number;
  readonly #tails = new Set<Tail>();
  /** By cursor, of this version. */
  readonly #reading = new Map<number, Promise<Page>>();
  readonly #known = new Map<number, Page>();
  readonly #unfollow: () => void;
  /** Rises whenever the log has grown. */
  version = 0;
  #isWaking = false;

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
    const { version } = this;
    const page = await (this.#reading.get(after) ?? this.#startReading(after));
    // A full page is history, which is kept for nobody.
    if (isFull(page)) this.#reading.delete(after);
    else if (version === this.version) this.#known.set(after, page);
    return page;
  }

  #startReading(after: number): Promise<Page> {
    const reading = this.#forum.log.readPage(this.#chamberId, after, PAGE_LINES_MAX);
    this.#reading.set(after, reading);
    // A failure is that of those who wait now: whoever comes later reads anew.
    reading.catch(() => this.#reading.get(after) === reading && this.#reading.delete(after));
    return reading;
  }

  /** The page after that cursor, up to the head, where somebody has read it since the log grew. */
  known(after: number): Page | undefined {
    return this.#known.get(after);
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
    this.#reading.clear();
    this.#known.clear();
    if (!this.#isWaking) void this.#wakeAll();
  }

  /** What grows meanwhile goes out with what has not gone out yet, and to the others in another pass. */
  async #wakeAll(): Promise<void> {
    this.#isWaking = true;
    for (let woken = -1; woken !== this.version; ) {
      woken = this.version;
      await this.#wakeOnce();
    }
    this.#isWaking = false;
  }

  async #wakeOnce(): Promise<void> {
    let woken = 0;
    for (const tail of this.#tails) {
      if (woken++ % WAKES_PER_TICK === WAKES_PER_TICK - 1) await nextTick();
      // The first at a cursor reads for all; a failure is met again by each that needs the page.
      if (tail.isWaiting && this.#known.get(tail.cursor) === undefined) await this.read(tail.cursor).catch(() => {});
      tail.wake();
    }
  }
}
