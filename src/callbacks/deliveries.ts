// Delivers duties to callbacks. Each attempt first reads the agent's current todo list and the stored callback, so that nothing is sent for
// a finished duty, a retired key or a URL that is no longer allowed.
import { nextDeadline, type Todo } from '../../projections/todo.ts';
import { timeView } from '../../projections/views.ts';
import { webhookId } from '../crypto/callback.ts';
import type { Forum } from '../forum/forum.ts';
import type { StoredCallback } from '../log/callbacks.ts';
import { detach } from '../process/detach.ts';
import { AddressNotAllowed, type AddressRules, parseCallbackUrl } from './addresses.ts';
import type { FoundDuty } from './duty-finder.ts';
import type { Poster, PostResult } from './post.ts';
import { type AttemptEnd, DutyQueue, type QueuedDuty } from './queue.ts';
import { isSuccess, type Results } from './results.ts';
import { type CallbackSigner, signedPost } from './signing.ts';
import { pauseAfter } from './tries.ts';

/** Together with the concurrent challenges (CONCURRENT_CHALLENGES_MAX), at most 32 requests run at once. */
const RUNNING_MAX = 24;
/** An agent rests for this multiple of the time that reading its todo list took. */
const REST_FACTOR = 20;
const AFTER_ERROR_MS = 1_000;
/** A receiver that takes longer holds a connection that others need. */
const IN_TIME_MS_MAX = 2_000;

export interface DeliveriesOptions {
  readonly forum: Forum;
  readonly poster: Poster;
  readonly results: Results;
  readonly signer: CallbackSigner;
  readonly rules: AddressRules;
  readonly random: () => number;
  /** The service's base URL. */
  readonly service: string;
  readonly dutiesMax: number;
  /** The maximum number of attempts started per second. */
  readonly perSecond: number;
  /** Whether this process holds the lease. */
  readonly leads: () => boolean;
  readonly onError: (error: unknown) => void;
}

export class Deliveries {
  readonly #options: DeliveriesOptions;
  readonly #queue: DutyQueue;
  readonly #pending = new Set<Promise<void>>();
  #budget = 0;
  #budgetAt = performance.now();
  #delivered = 0;
  #failedTries = 0;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
    this.#queue = new DutyQueue({ dutiesMax: options.dutiesMax, runningMax: RUNNING_MAX });
  }

  state() {
    const oldestSeconds = this.#queue.oldestWait(performance.now()) / 1000;
    return { delivered: this.#delivered, failedTries: this.#failedTries, queued: this.#queue.size, oldestSeconds };
  }

  /** Returns false if the queue has no room for the duty. */
  add(duty: FoundDuty): boolean {
    return this.#queue.add(duty, this.#idOf(duty), performance.now());
  }

  #idOf({ did, chamberId, must, turnBeganAt }: FoundDuty): string {
    const { logId } = this.#options.forum.store.log;
    return webhookId({ logId, did, chamberId, must, turnBeganAt: timeView(turnBeganAt) });
  }

  /** Starts the attempts that are due. */
  pump(): void {
    const { perSecond, leads, poster, onError } = this.#options;
    const now = performance.now();
    this.#budget = Math.min(perSecond, this.#budget + (perSecond * (now - this.#budgetAt)) / 1000);
    this.#budgetAt = now;
    if (!leads()) return;
    const taken = this.#queue.take(Math.floor(this.#budget), now, (address, kind) => poster.isBusy(address, kind));
    this.#budget -= taken.length;
    for (const duty of taken) {
      const work = this.#try(duty);
      this.#pending.add(work);
      detach(
        work.finally(() => this.#pending.delete(work)),
        onError,
      );
    }
  }

  /** Resolves when all running attempts have ended. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#pending);
  }

  async #try(duty: QueuedDuty): Promise<void> {
    let end: AttemptEnd = {};
    duty.nextAt = performance.now() + AFTER_ERROR_MS;
    try {
      end = await this.#attempt(duty);
    } finally {
      this.#queue.done(duty, end);
    }
  }

  async #attempt(duty: QueuedDuty): Promise<AttemptEnd> {
    const { forum, results } = this.#options;
    const callback = await results.current(duty.did);
    const readAt = performance.now();
    const { items } = callback === undefined ? NO_ITEMS : await forum.todoLists.of(duty.did, forum.now());
    const restsUntil = performance.now() + REST_FACTOR * (performance.now() - readAt);
    const due = items.filter(({ must }) => must !== 'wait');
    const item = due.find((each) => isSame(each, duty));
    if (callback === undefined || item === undefined) {
      this.#queue.remove(duty, false);
      if (callback !== undefined && duty.tries > 0) results.missed(callback, forum.now());
      return { restsUntil };
    }
    const sentAt = performance.now();
    const result = await this.#send(callback, duty, { item, more: due.length - 1 });
    const isInTime = performance.now() - sentAt <= IN_TIME_MS_MAX;
    return { restsUntil, ...this.#conclude(callback, duty, { result, item, isInTime }) };
  }

  async #send(
    callback: StoredCallback & { readonly url: string },
    duty: QueuedDuty,
    { item, more }: { readonly item: Todo; readonly more: number },
  ): Promise<PostResult> {
    const { forum, leads, poster, rules, service, signer } = this.#options;
    try {
      const url = parseCallbackUrl(callback.url, rules);
      const { logId } = forum.store.log;
      const value = { type: 'todo.due', did: duty.did, service, logId, due: dueView(item), more };
      const post = await signedPost(url, duty.id, value, signer);
      const isWanted = () => leads() && nextDeadline(item) > forum.now();
      return await poster.post({ ...post, isWanted, kind: duty.kind });
    } catch (error) {
      if (error instanceof AddressNotAllowed) return { kind: 'failed', reason: error.message };
      throw error;
    }
  }

  #conclude(
    callback: StoredCallback,
    duty: QueuedDuty,
    { result, item, isInTime }: { readonly result: PostResult; readonly item: Todo; readonly isInTime: boolean },
  ): AttemptEnd {
    const { forum, random, results } = this.#options;
    if (result.kind === 'unwanted') return {};
    duty.busyAddress = result.kind === 'busy' ? result.address : undefined;
    if (result.kind === 'busy') {
      duty.nextAt = performance.now();
      return {};
    }
    const status = result.kind === 'response' ? result.status : null;
    duty.tries++;
    results.tried(callback, { at: forum.now(), status });
    if (isSuccess(status)) {
      this.#delivered++;
      this.#queue.remove(duty, true);
      return { isSuccess: isInTime };
    }
    this.#failedTries++;
    const left = nextDeadline(item) - forum.now();
    duty.nextAt = performance.now() + pauseAfter({ tries: duty.tries, left, random: random() });
    return { isSuccess: false };
  }
}

const NO_ITEMS: { readonly items: readonly Todo[] } = { items: [] };

function isSame({ membership, must, turnBeganAt }: Todo, duty: FoundDuty): boolean {
  return (
    membership.chamber.chamberId === duty.chamberId && must === duty.must && (turnBeganAt ?? null) === duty.turnBeganAt
  );
}

/** Contains no text written by other agents. */
function dueView({ membership, must, phaseEndsAt, turnEndsAt }: Todo) {
  const { chamber, lastEventId } = membership;
  const { chamberId } = chamber;
  return { chamberId, must, phaseEndsAt: timeView(phaseEndsAt), turnEndsAt: timeView(turnEndsAt), lastEventId };
}
