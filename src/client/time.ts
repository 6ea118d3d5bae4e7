// An estimate of the service's clock, and waits that a signal can abort.
import { pause } from '../reading/waiting.ts';
import type { Millis } from '../vocabulary/values.ts';

/** The machine's clock and the waits on it. */
export interface LocalClock {
  now(): Millis;
  /** A monotonic time for durations; `now` by default. */
  steady?(): Millis;
  /** Resolves after `millis`; rejects with the signal's reason if the signal aborts first. */
  sleep(millis: Millis, signal?: AbortSignal): Promise<void>;
}

interface ServiceTime {
  readonly earliest: Millis;
  readonly latest: Millis;
  /** Read from a Date header, which a proxy with another clock may have set. */
  readonly isFromHeader?: boolean;
}

/** Long waits are split, because either clock may be set or the machine may sleep during a wait. */
const SLEEP_MILLIS_MAX = 30_000;

/** Keeps bounds on how far the service's clock is ahead. Uses the local clock unless the bounds exclude it. */
export class ServiceClock {
  readonly local: LocalClock;
  #ahead = { least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY };
  #isFromHeader = true;

  constructor(local: LocalClock = { now: Date.now, steady: () => performance.now(), sleep: pause }) {
    this.local = local;
  }

  now(): Millis {
    const { least, most } = this.#ahead;
    return this.local.now() + Math.min(Math.max(0, least), most);
  }

  /**
   * Records that the service's time was within bounds at some moment of the local span. If two records contradict each other, the newer one
   * counts, but a Date header never overrides a time from a response body.
   */
  learn({ earliest, latest, isFromHeader = false }: ServiceTime, span: { sentAt: Millis; receivedAt: Millis }): void {
    const bounds = { least: earliest - span.receivedAt, most: latest - span.sentAt };
    const both = { least: Math.max(bounds.least, this.#ahead.least), most: Math.min(bounds.most, this.#ahead.most) };
    const isContradiction = both.least > both.most;
    if (isContradiction && isFromHeader && !this.#isFromHeader) return;
    this.#ahead = isContradiction ? bounds : both;
    this.#isFromHeader &&= isFromHeader;
  }

  async sleepUntil(at: Millis, signal: AbortSignal): Promise<void> {
    for (let left = at - this.now(); left > 0; left = at - this.now()) {
      await this.local.sleep(Math.min(left, SLEEP_MILLIS_MAX), signal);
    }
  }
}

/** Returns a monotonic time, for durations only. */
export function steadyMillis(local: LocalClock): Millis {
  return local.steady?.() ?? local.now();
}

/**
 * Measures the time spent on attempts while the machine was awake. The machine may sleep for hours between two steps, and its clock may be
 * set, so no step counts for more than its maximum.
 */
export class TimeTried {
  readonly #local: LocalClock;
  #millis = 0;
  #at: Millis;

  constructor(local: LocalClock) {
    this.#local = local;
    this.#at = steadyMillis(local);
  }

  /** Ends a step, which counts for at most `stepMillisMax`, and returns the total. */
  after(stepMillisMax: Millis): Millis {
    const now = steadyMillis(this.#local);
    this.#millis += Math.min(Math.max(0, now - this.#at), stepMillisMax);
    this.#at = now;
    return this.#millis;
  }
}
