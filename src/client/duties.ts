// Delivers each of an agent's duties once. The todo list contains an open duty with every change, nodes may lag behind one another, and a
// member's next turn may look like the last one. So the phase, the passes since, and the end of the turn distinguish a duty from the
// previous one.
import type { TodoView } from '../../projections/todo.ts';
import { ConcurrencyLimit } from '../process/concurrency-limit.ts';
import { backoffMillis } from '../reading/waiting.ts';
import { instantOf, type Millis, PHASES } from '../vocabulary/values.ts';
import type { CallOptions } from './call.ts';
import { ClientError } from './error.ts';
import type { WatchContext, WatchedAgent } from './reveals.ts';
import { steadyMillis } from './time.ts';
import type { Todo } from './todo-stream.ts';
import type { Duty } from './watch-report.ts';

/** An untrusted service could list any number of chambers. */
const CHAMBERS_MAX = 10_000;
const RETRY_FIRST_MILLIS = 1_000;
const RETRY_FACTOR = 5;
const RETRY_MAX_MILLIS = 125_000;

/** Resolves when the duty is done; rejects to be called again later. */
export type OnDue = (duty: Duty, options: Required<CallOptions>) => Promise<unknown> | unknown;

interface DutiesOptions extends WatchContext {
  readonly onDue: OnDue;
  readonly atOnceMax: number;
}

/** The newest item of a chamber; `replaced` aborts when another item replaces it. */
interface Seen {
  readonly item: TodoView;
  readonly now: Millis;
  readonly replaced: AbortController;
}

interface Chamber {
  /** Undefined once the service no longer lists the chamber. */
  seen: Seen | undefined;
}

/** A duty with the data that distinguishes it from the next one. */
interface KnownDuty {
  /** An object that is unique to the duty. */
  readonly key: object;
  readonly duty: Duty;
  /** Passes up to this event belong to earlier turns. */
  readonly readTo: number;
}

export class Duties {
  readonly #forum: WatchedAgent['forum'];
  readonly #options: DutiesOptions;
  readonly #chambers = new Map<number, Chamber>();
  readonly #served = new Set<Promise<void>>();
  readonly #atOnce: ConcurrencyLimit;

  constructor(forum: WatchedAgent['forum'], options: DutiesOptions) {
    this.#forum = forum;
    this.#options = options;
    this.#atOnce = new ConcurrencyLimit({ max: options.atOnceMax });
  }

  offer({ now, todo, more }: Todo): void {
    const listed = new Set(todo.map(({ chamberId }) => chamberId));
    for (const [chamberId, chamber] of this.#chambers) if (!more && !listed.has(chamberId)) replace(chamber, undefined);
    for (const item of todo) {
      const chamber = this.#chambers.get(item.chamberId);
      const seen = { item, now: instantOf(now), replaced: new AbortController() };
      if (chamber !== undefined) replace(chamber, seen);
      else if (isDuty(item) && this.#chambers.size < CHAMBERS_MAX) this.#open(item.chamberId, { seen });
    }
  }

  /** Resolves when the running handlers have ended. Call after the signal has aborted, so that no others start. */
  async ended(): Promise<void> {
    for (const chamber of this.#chambers.values()) replace(chamber, undefined);
    await Promise.all(this.#served);
  }

  #open(chamberId: number, chamber: Chamber): void {
    this.#chambers.set(chamberId, chamber);
    const serving = this.#serve(chamber).finally(() => {
      this.#chambers.delete(chamberId);
      this.#served.delete(serving);
    });
    this.#served.add(serving);
  }

  /** Delivers one duty at a time, until the service no longer lists the chamber. */
  async #serve(chamber: Chamber): Promise<void> {
    const { local } = this.#forum.service.clock;
    let last: KnownDuty | undefined;
    let done: object | undefined;
    let failures = 0;
    let retryAt = 0;
    for (let { seen } = chamber; seen !== undefined && !this.#options.signal.aborted; seen = chamber.seen) {
      const known = await this.#identify(seen, last);
      if (known !== undefined && known.key !== last?.key) failures = 0;
      last = known ?? last;
      if (known === undefined || known.key === done) {
        await untilReplaced(seen);
        continue;
      }
      const pauseMillis = failures === 0 ? 0 : retryAt - steadyMillis(local);
      if (pauseMillis > 0) {
        await local.sleep(pauseMillis, seen.replaced.signal).catch(() => {});
        continue;
      }
      const waitMillis = retryMillis(failures);
      const outcome = await this.#perform(chamber, known, waitMillis);
      if (outcome === 'done') done = known.key;
      if (outcome !== 'failed') continue;
      failures++;
      retryAt = steadyMillis(local) + waitMillis;
    }
  }

  /** Calls the handler once a slot is free, unless the duty is over by then. */
  #perform(chamber: Chamber, known: KnownDuty, waitMillis: Millis): Promise<'done' | 'failed' | 'over'> {
    const { onDue, signal, report } = this.#options;
    return this.#atOnce.run(async () => {
      const { seen } = chamber;
      const current = seen && (await this.#identify(seen, known));
      if (current?.key !== known.key || signal.aborted) return 'over';
      try {
        await onDue(current.duty, { signal });
        return 'done';
      } catch (error) {
        if (signal.aborted) return 'over';
        report({ type: 'duty-failed', duty: current.duty, error, retryMillis: waitMillis });
        return 'failed';
      }
    });
  }

  /** Returns the item's duty, with the key of the last duty if it is the same one; undefined if nothing is due. */
  async #identify({ item, now }: Seen, last: KnownDuty | undefined): Promise<KnownDuty | undefined> {
    if (!isDuty(item)) return undefined;
    const next = { key: {}, duty: item, readTo: item.lastEventId };
    if (last === undefined || PHASES.indexOf(item.phase) > PHASES.indexOf(last.duty.phase)) return next;
    // A node that lags behind lists an earlier duty again.
    if (item.lastEventId < last.readTo) return last;
    if (item.must === 'commit') return { ...next, key: last.key };
    const { turnEndsAt } = last.duty;
    const isOver = turnEndsAt !== null && now >= instantOf(turnEndsAt);
    return isOver || (await this.#hasPass(item, last.readTo)) ? next : { ...next, key: last.key };
  }

  /** Returns whether a member passed after the event; true if the log can't be read, so that no duty is missed. */
  async #hasPass({ chamberId, lastEventId }: TodoView, after: number): Promise<boolean> {
    const { signal } = this.#options;
    for (let failures = 0; lastEventId > after; failures++) {
      try {
        for await (const { event } of this.#forum.history(chamberId, { after, signal })) {
          if (event.eventId > lastEventId) return false;
          if (event.type === 'chamber.passed') return true;
        }
        return false;
      } catch (error) {
        if (signal.aborted || !(error instanceof ClientError) || !error.retryable) return true;
        await this.#forum.service.clock.local.sleep(backoffMillis(failures), signal).catch(() => {});
      }
    }
    return false;
  }
}

function isDuty(item: TodoView): item is Duty {
  return item.must === 'pass' || item.must === 'commit';
}

function replace(chamber: Chamber, seen: Seen | undefined): void {
  const before = chamber.seen;
  chamber.seen = seen;
  before?.replaced.abort();
}

function untilReplaced({ replaced: { signal } }: Seen): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Returns 1, 5, 25, 125, 125 … seconds, with jitter. */
function retryMillis(failures: number): Millis {
  const most = Math.min(RETRY_FIRST_MILLIS * RETRY_FACTOR ** failures, RETRY_MAX_MILLIS);
  return most * (0.75 + Math.random() / 4);
}
