// Watches the list of one agent (GET /me/todo). Follows the agent's chambers once and reads the list once, however many requests wait.
// Invariants:
//
// - No change is missed. A list is delivered only if everything that can change it was followed before the list was read. A wake-up
//   during a read causes another read.
// - No list is older than the request that gets it: only watchers that were added before a read began get its result.
import type { Forum } from '../forum/forum.ts';
import type { TodoList } from '../forum/todo-lists.ts';
import type { StreamId } from '../log/stream-id.ts';
import { detach } from '../process/detach.ts';
import type { Millis } from '../vocabulary/values.ts';

/** The delay between the first event of a burst and the read, so that a burst costs one read. */
const BURST_MS = 50;
/** Limits how long a change of the clock goes unnoticed. */
const WAIT_MS_MAX = 60_000;

export interface Watcher {
  readonly take: (list: TodoList) => void;
  readonly fail: (error: unknown) => void;
  readonly end: () => void;
}

export class WatchedAgent {
  readonly #forum: Forum;
  readonly #did: string;
  readonly #onEmpty: () => void;
  readonly #watchers = new Set<Watcher>();
  readonly #followed = new Map<StreamId, () => void>();
  /** Started by the first event of a burst. */
  #burst: NodeJS.Timeout | undefined;
  #isReading = false;
  #isWoken = false;
  #onWake = () => {};

  constructor(forum: Forum, did: string, onEmpty: () => void) {
    this.#forum = forum;
    this.#did = did;
    this.#onEmpty = onEmpty;
  }

  /** Returns a function that removes the watcher. */
  add(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    if (this.#isReading) this.#wake();
    else detach(this.#keepReading());
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#wake();
    };
  }

  end(): void {
    for (const { end } of this.#watchers) end();
  }

  async #keepReading(): Promise<void> {
    this.#isReading = true;
    try {
      this.#follow(new Set([this.#did]));
      while (this.#watchers.size > 0) {
        this.#isWoken = false;
        const watchers = [...this.#watchers];
        const list = await this.#forum.todoLists.of(this.#did, this.#forum.now());
        const chamberIds = list.items.map(({ membership }) => membership.chamber.chamberId);
        const hasNew = this.#follow(new Set([this.#did, ...chamberIds]));
        if (hasNew) continue;
        for (const { take } of watchers) take(list);
        await this.#untilWoken(list.validUntil);
      }
    } catch (error) {
      for (const { fail } of this.#watchers) fail(error);
    } finally {
      this.#isReading = false;
      clearTimeout(this.#burst);
      this.#follow(new Set());
      this.#onEmpty();
    }
  }

  /** Follows these streams only; returns whether one of them was not followed before. */
  #follow(streams: ReadonlySet<StreamId>): boolean {
    for (const [stream, unfollow] of this.#followed) {
      if (streams.has(stream)) continue;
      unfollow();
      this.#followed.delete(stream);
    }
    const before = this.#followed.size;
    const onGrowth = () => {
      this.#burst ??= setTimeout(() => this.#wake(), BURST_MS);
    };
    for (const stream of streams) {
      if (!this.#followed.has(stream)) this.#followed.set(stream, this.#forum.follow(stream, onGrowth));
    }
    return this.#followed.size > before;
  }

  #wake(): void {
    clearTimeout(this.#burst);
    this.#burst = undefined;
    this.#isWoken = true;
    this.#onWake();
  }

  async #untilWoken(deadline: Millis): Promise<void> {
    if (this.#isWoken) return;
    await new Promise<void>((resolve) => {
      const left = Math.max(0, deadline - this.#forum.now());
      const timer = setTimeout(resolve, Math.min(WAIT_MS_MAX, left));
      this.#onWake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
