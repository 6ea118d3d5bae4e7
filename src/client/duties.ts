// Hands each duty of an agent over once. The todo lists an open duty again with every change, nodes may lag behind one another, and a
// member's next turn may look like the one before. So a duty is told from the last one by its phase, by the passes since, and by the end
// of its turn.
import type { TodoView } from '../../projections/todo.ts';
import { ConcurrencyLimit } from '../process/concurrency-limit.ts';
import { backoffMillis } from '../reading/waiting.ts';
import { instantOf, type Millis, PHASES } from '../vocabulary/values.ts';
import type { CallOptions, Service } from './call.ts';
import { ClientError } from './error.ts';
import type { FollowOptions, VerifiedLine } from './events.ts';
import type { Watching } from './reveals.ts';
import { steadyMillis } from './time.ts';
import type { Todo } from './todo-stream.ts';
import type { Duty } from './watch-report.ts';

/** An untrusted service could list any number of chambers. */
const CHAMBERS_MAX = 10_000;
const RETRY_FIRST_MILLIS = 1_000;
const RETRY_FACTOR = 5;
const RETRY_MAX_MILLIS = 125_000;

/** Resolves when the duty is done, and rejects to get it again later. */
export type OnDue = (duty: Duty, options: Required<CallOptions>) => Promise<unknown> | unknown;

interface DutiesOptions extends Watching {
  readonly onDue: OnDue;
  readonly atOnceMax: number;
}

interface LoggedForum {
  readonly service: Service;
  history(chamberId: number, options: FollowOptions): AsyncGenerator<VerifiedLine, void, undefined>;
}

/** The newest item of a chamber; the signal aborts when another one replaces it. */
interface Seen {
  readonly item: TodoView;
  readonly now: Millis;
  readonly replaced: AbortController;
}

interface Chamber {
  /** undefined once the service lists it no more. */
  seen: Seen | undefined;
}

/** A duty as far as it tells the next one apart. */
interface Known {
  /** One object for each duty. */
  readonly key: object;
  readonly duty: Duty;
  /** Passes up to this event belong to earlier turns. */
  readonly readTo: number;
}

export class Duties {
  readonly #forum: LoggedForum;
  readonly #options: DutiesOptions;
  readonly #chambers = new Map<number, Chamber>();
  readonly #served = new Set<Promise<void>>();
  readonly #atOnce: ConcurrencyLimit;

  constructor(forum: LoggedForum, options: DutiesOptions) {
    this.#forum = forum;
    this.#options = options;
    this.#atOnce = new ConcurrencyLimit({ max: options.atOnceMax });
  }

  /** Takes a newer todo. */
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

  /** Resolves when the handlers that run have ended; starts no others. The signal must have aborted. */
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

  /** One duty at a time, until the service lists the chamber no more. */
  async #serve(chamber: Chamber): Promise<void> {
    const { local } = this.#forum.service.clock;
    let last: Known | undefined;
    let done: object | undefined;
    let failures = 0;
    let retryAt = 0;
    for (let { seen } = chamber; seen !== undefined && !this.#options.signal.aborted; seen = chamber.seen) {
      const known = await this.#know(seen, last);
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

  /** Waits for its turn among the chambers, by which time the duty may be over. */
  #perform(chamber: Chamber, known: Known, waitMillis: Millis): Promise<'done' | 'failed' | 'over'> {
    const { onDue, signal, report } = this.#options;
    return this.#atOnce.run(async () => {
      const { seen } = chamber;
      const current = seen && (await this.#know(seen, known));
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

  /** The duty of the item, with the last one's key if it is the same; undefined if nothing is due. */
  async #know({ item, now }: Seen, last: Known | undefined): Promise<Known | undefined> {
    if (!isDuty(item)) return undefined;
    const next = { key: {}, duty: item, readTo: item.lastEventId };
    if (last === undefined || PHASES.indexOf(item.phase) > PHASES.indexOf(last.duty.phase)) return next;
    // A node that is behind lists an earlier duty once more.
    if (item.lastEventId < last.readTo) return last;
    if (item.must === 'commit') return { ...next, key: last.key };
    const { turnEndsAt } = last.duty;
    const isOver = turnEndsAt !== null && now >= instantOf(turnEndsAt);
    return isOver || (await this.#hasPass(item, last.readTo)) ? next : { ...next, key: last.key };
  }

  /** Whether a turn was passed after the event. A log that can't be read decides for another turn: no duty is missed. */
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

/** 1, 5, 25, 125, 125 … seconds, with jitter. */
function retryMillis(failures: number): Millis {
  const most = Math.min(RETRY_FIRST_MILLIS * RETRY_FACTOR ** failures, RETRY_MAX_MILLIS);
  return most * (0.75 + Math.random() / 4);
}
