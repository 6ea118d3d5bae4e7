// Token buckets, one for each caller: a time instead of a count (the generic cell rate algorithm), so that nothing refills
// them and a bucket that nobody uses is simply forgotten.
import { ForumError } from '../vocabulary/errors.ts';
import type { Millis } from '../vocabulary/values.ts';

export interface RateLimits {
  /** Sustained. */
  readonly perSecond: number;
  /** At once, after a rest. */
  readonly burst: number;
}

/** Beyond it the least recent callers start with a full bucket again: memory is bounded before fairness is perfect. */
const CALLERS_MAX = 100_000;

export class RateLimit {
  readonly #interval: Millis;
  readonly #slack: Millis;
  readonly #fillTime: Millis;
  readonly #callersMax: number;
  readonly #clock: () => Millis;
  /** When each caller's bucket is full again; a caller in neither map has a full one. */
  #recent = new Map<string, Millis>();
  #older: ReadonlyMap<string, Millis> = new Map();
  #turnAt: Millis;

  /** The clock is monotonic. */
  constructor({ perSecond, burst }: RateLimits, clock = () => performance.now(), callersMax = CALLERS_MAX) {
    this.#interval = 1000 / perSecond;
    this.#fillTime = this.#interval * burst;
    this.#slack = this.#fillTime - this.#interval;
    this.#callersMax = callersMax;
    this.#clock = clock;
    this.#turnAt = clock() + this.#fillTime;
  }

  /** Takes a token from the caller's bucket and gives 0; or gives how many milliseconds the caller must wait for one. */
  take(caller: string): Millis {
    const now = this.#clock();
    if (now >= this.#turnAt || this.#recent.size >= this.#callersMax) this.#forget(now);
    const fullAt = Math.max(now, this.#recent.get(caller) ?? this.#older.get(caller) ?? 0);
    const wait = fullAt - this.#slack - now;
    if (wait > 0) return wait;
    this.#recent.set(caller, fullAt + this.#interval);
    return 0;
  }

  /** Takes a token, or gives FORUM_ERR_RATE with Retry-After. */
  refuse(caller: string, whose: string): ForumError | undefined {
    const wait = this.take(caller);
    return wait > 0 ? tooMany(wait, whose) : undefined;
  }

  get callers(): number {
    return this.#recent.size + this.#older.size;
  }

  /** Whoever made no request for the time that fills a bucket has a full one. */
  #forget(now: Millis): void {
    this.#older = this.#recent;
    this.#recent = new Map();
    this.#turnAt = now + this.#fillTime;
  }
}

function tooMany(wait: Millis, whose: string): ForumError {
  const seconds = Math.max(1, Math.ceil(wait / 1000));
  return new ForumError('FORUM_ERR_RATE', `too many requests of ${whose}: retry in ${seconds} s`, {
    headers: { 'Retry-After': String(seconds) },
  });
}
