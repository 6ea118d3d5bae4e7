// Delivers a chamber's log to its consumers. A subscription is a cursor over the log: one loop delivers both past and live events, and a
// consumer that is behind costs no memory. Invariants, and why they hold:
//
// - Nothing is missed. Growth raises the topic's `version` before any subscription is woken. A subscription waits only when the
//   read that found nothing after its cursor began in the current version, and its loop ends without being suspended between
//   that check and the wait. So growth either fails the check or finds the subscription waiting, with no loop left running.
// - Nothing is repeated or reordered. Only a consumer's own subscription delivers lines to it: always those right after the cursor, one
//   page at a time, and the cursor advances before the consumer sees the page. A subscription that reads or waits for backpressure is not
//   waiting for growth, so wake() ignores it.
// - A wake-up carries no data. Woken subscriptions read the log from their own cursor. Those at the same cursor share one read,
//   which is dropped when the log grows or every subscription has been woken.
// - No text is delivered after it was withheld. A page is read again if a withholding occurred during the read, and a withholding drops all
//   shared reads.
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { Forum } from '../forum/forum.ts';
import { ALL_CHAMBERS, type EventLog, type OrderedPage, type Page } from '../log/log.ts';
import { PAGE_BYTES, PAGE_LINES_MAX } from '../log/pages.ts';
import type { Withholding } from '../log/withholding.ts';
import { detach } from '../process/detach.ts';

export interface Consumer {
  /** Takes the next lines; a promise resolves when the consumer can take more. */
  readonly take: (page: Page) => Promise<void> | undefined;
  /** Called once, after the last lines. */
  readonly end: (reason: EndReason) => void;
  /** Called at the head, with the last delivered event, before `endEventId`. */
  readonly atHead?: ((cursor: number) => Promise<void>) | undefined;
  /** Called at the head. Resolves to the event that ends the stream; undefined while there is none. */
  readonly endEventId?: (() => Promise<number | undefined>) | undefined;
  readonly allowance?: Allowance | undefined;
}

/** The main-thread time that the consumer's address may use. A consumer that exceeds it falls behind for a while. */
export interface Allowance {
  /** Called before live lines are delivered. Charges the main-thread time from here on to the address. */
  readonly isOverBudget: () => boolean;
  /** Resolves when more may be delivered; called after each full page too. */
  readonly waitForBudget: () => Promise<void>;
}

/** A consumer whose connection also carries notes, which are not lines of the log. */
export interface Annotated extends Consumer {
  readonly note: (text: string) => void;
}

/** An error if the lines could not be read or taken. */
export type EndReason = 'stopped' | 'over' | { readonly error: unknown };

export type Source = Pick<Forum, 'follow'> & {
  readonly withholding: Pick<Withholding, 'through'>;
  readonly log: Pick<EventLog, 'readPage' | 'lastEventId' | 'readAll' | 'lastPlace' | 'readQueue'>;
};

/** All subscriptions, by chamber. Those of ALL_CHAMBERS use places as cursors. */
export class Subscriptions {
  readonly #source: Source;
  readonly #topics = new Map<number, ChamberTopic>();

  constructor(source: Source) {
    this.#source = source;
  }

  /** Delivers every event after `after` in order and once, then live events, until stop(). Returns before the first delivery. */
  open(chamberId: number, after: number, consumer: Consumer): Subscription {
    let topic = this.#topics.get(chamberId);
    if (topic === undefined) {
      topic = new ChamberTopic(this.#source, chamberId, () => this.#topics.delete(chamberId));
      this.#topics.set(chamberId, topic);
    }
    return new Subscription(topic, after, consumer);
  }

  /** Returns how many events the slowest consumer is behind its head. */
  async lag(): Promise<number> {
    let lag = 0;
    for (const [chamberId, { subscriptions }] of this.#topics) {
      const { log } = this.#source;
      const head = await (chamberId === ALL_CHAMBERS ? log.lastPlace() : log.lastEventId(chamberId));
      for (const { cursor } of subscriptions) lag = Math.max(lag, head - cursor);
    }
    return lag;
  }

  stop(): void {
    for (const { subscriptions } of this.#topics.values()) {
      for (const subscription of subscriptions) subscription.stop();
    }
  }
}

class Subscription {
  /** The last delivered event, or the place up to which the log was read. */
  cursor: number;
  /** Whether the subscription is at the head without backpressure. */
  isWaiting = false;
  #isStopped = false;
  /** Charges work that growth resumes to the request that opened the subscription. */
  readonly #inOpenersContext = AsyncLocalStorage.snapshot();
  readonly #topic: ChamberTopic;
  readonly #consumer: Consumer;

  constructor(topic: ChamberTopic, after: number, consumer: Consumer) {
    this.#topic = topic;
    this.#consumer = consumer;
    this.cursor = after;
    topic.subscriptions.add(this);
    this.#startReading();
  }

  /** Called when the log has grown. Delivers a page that is in memory synchronously. */
  wake(): void {
    if (!this.isWaiting) return;
    const { allowance } = this.#consumer;
    if (allowance?.isOverBudget()) {
      this.#startReading(allowance.waitForBudget());
      return;
    }
    const { version, reads } = this.#topic;
    const page = reads.get(this.cursor)?.page;
    const backpressure = page && this.#accept(version, page);
    if (page === undefined || backpressure !== undefined) this.#startReading(backpressure);
  }

  stop(reason: EndReason = 'stopped'): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.isWaiting = false;
    this.#topic.remove(this);
    this.#consumer.end(reason);
  }

  #startReading(backpressure?: Promise<void>): void {
    detach(this.#inOpenersContext(() => this.#read(backpressure)));
  }

  async #read(backpressure?: Promise<void>): Promise<void> {
    this.isWaiting = false;
    try {
      await backpressure;
      while (!this.#isStopped) {
        // Keeps no reference to the page while the consumer is slow, which may take hours.
        const next = this.#accept(this.#topic.version, await this.#topic.read(this.cursor));
        if (this.isWaiting) {
          await this.#consumer.atHead?.(this.cursor);
          const endEventId = await this.#consumer.endEventId?.();
          if (endEventId !== undefined && this.cursor >= endEventId) this.stop('over');
          return;
        }
        await next;
      }
    } catch (error) {
      this.stop({ error });
    }
  }

  /**
   * Delivers a page that was read in this version. A page that does not advance the cursor shows that the subscription is at the head. Returns
   * a promise if another read must follow.
   */
  #accept(version: number, page: Page | OrderedPage): Promise<void> | undefined {
    if (this.#isStopped) return undefined;
    const cursor = 'last' in page ? page.last : this.cursor + page.count;
    if (cursor === this.cursor) {
      this.isWaiting = this.#topic.version === version;
      return undefined;
    }
    this.cursor = cursor;
    try {
      const backpressure = page.count === 0 ? undefined : this.#consumer.take(page);
      // A fast consumer must not monopolise the process.
      if (isFull(page) || page.count === 0)
        return Promise.resolve(backpressure).then(this.#consumer.allowance?.waitForBudget ?? this.#topic.nextTurn);
      // Only another read shows that the subscription is at the head.
      const { endEventId, atHead } = this.#consumer;
      return 'last' in page || endEventId || atHead ? Promise.resolve(backpressure) : backpressure;
    } catch (error) {
      this.stop({ error });
      return undefined;
    }
  }
}

export type { Subscription };

interface SharedRead {
  readonly reading: Promise<Page | OrderedPage>;
  page: Page | OrderedPage | undefined;
}

/** How many subscriptions are woken before other work may run. */
const WAKES_PER_TICK = 64;

class ChamberTopic {
  readonly subscriptions = new Set<Subscription>();
  /** The shared reads of this version, by cursor. */
  readonly #reads = new Map<number, SharedRead>();
  /** The last withholding that the shared reads include. */
  #through = 0;
  version = 0;
  #isWaking = false;
  readonly #source: Source;
  readonly #chamberId: number;
  readonly #onEmpty: () => void;
  readonly #unfollow: () => void;

  constructor(source: Source, chamberId: number, onEmpty: () => void) {
    this.#source = source;
    this.#chamberId = chamberId;
    this.#onEmpty = onEmpty;
    this.#unfollow = source.follow(chamberId, () => {
      this.version++;
      this.reads.clear();
      if (!this.#isWaking) detach(this.#wakeAll());
    });
  }

  get reads(): Map<number, SharedRead> {
    const { through } = this.#source.withholding;
    if (this.#through !== through) this.#reads.clear();
    this.#through = through;
    return this.#reads;
  }

  remove(subscription: Subscription): void {
    this.subscriptions.delete(subscription);
    if (this.subscriptions.size > 0) return;
    this.#unfollow();
    this.#onEmpty();
  }

  readonly nextTurn = (): Promise<void> => this.#source.log.readQueue.wait('bulk');

  async read(after: number): Promise<Page | OrderedPage> {
    let shared = this.reads.get(after);
    if (shared === undefined) {
      shared = { reading: this.#readPage(after), page: undefined };
      this.reads.set(after, shared);
    }
    try {
      shared.page = await shared.reading;
      return shared.page;
    } finally {
      // Keeps the read only for subscriptions about to be woken, and not if it failed or returned a full page, which is history.
      const isKept = this.#isWaking && shared.page !== undefined && !isFull(shared.page);
      if (!isKept && this.reads.get(after) === shared) this.reads.delete(after);
    }
  }

  async #readPage(after: number): Promise<Page | OrderedPage> {
    const { log, withholding } = this.#source;
    for (;;) {
      const { through } = withholding;
      const page = await (this.#chamberId === ALL_CHAMBERS
        ? log.readAll(after, PAGE_LINES_MAX)
        : log.readPage(this.#chamberId, after, PAGE_LINES_MAX));
      if (through === withholding.through) return page;
    }
  }

  /** Growth during a pass reaches subscriptions that were not woken yet; the others are woken in another pass. */
  async #wakeAll(): Promise<void> {
    this.#isWaking = true;
    try {
      for (let pass = -1; pass !== this.version; ) {
        pass = this.version;
        await this.#wakeEach();
      }
    } finally {
      this.#isWaking = false;
      this.reads.clear();
    }
  }

  async #wakeEach(): Promise<void> {
    let woken = 0;
    for (const subscription of this.subscriptions) {
      if (++woken % WAKES_PER_TICK === 0) await nextTick();
      // The first subscription at a cursor reads the page for all. If that fails, each reads again and gets the error.
      const { isWaiting, cursor } = subscription;
      if (isWaiting && this.reads.get(cursor)?.page === undefined) await this.read(cursor).catch(() => {});
      subscription.wake();
    }
  }
}

/** Whether the page reached a limit: such a page is history and not the head. */
function isFull({ ndjson, count }: Page): boolean {
  return count === PAGE_LINES_MAX || ndjson.length >= PAGE_BYTES;
}
