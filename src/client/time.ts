// Time as the client sees it: an estimate of the service's clock, and waits that a signal can abort.
import type { Millis } from '../vocabulary/values.ts';

/** The machine's clock and the waits on it. */
export interface LocalClock {
  now(): Millis;
  /** Resolves after `millis`; rejects with the signal's reason if that aborts first. */
  sleep(millis: Millis, signal?: AbortSignal): Promise<void>;
}

interface ServiceTime {
  readonly earliest: Millis;
  readonly latest: Millis;
  /** Read from a Date header, which a proxy with another clock may have set. */
  readonly isFromHeader?: boolean;
}

/** A timer over 24.8 days fires at once, and either clock may be set during a long wait. */
const SLEEP_MILLIS_MAX = 30_000;

/** Keeps bounds on how far the service's clock is ahead; the local clock counts as right unless they exclude it. */
export class ServiceClock {
  readonly local: LocalClock;
  #ahead = { least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY };
  #isFromHeader = true;

  constructor(local: LocalClock = { now: Date.now, sleep: pause }) {
    this.local = local;
  }

  now(): Millis {
    const { least, most } = this.#ahead;
    return this.local.now() + Math.min(Math.max(0, least), most);
  }

  /**
   * Records that the service's time was within bounds at some moment of the local span. If two records contradict each
   * other, the newer one counts, but a Date header never overrides what the service itself said.
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

export async function pause(millis: Millis, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, millis);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

const BACKOFF_FIRST_MILLIS = 200;
const BACKOFF_MAX_MILLIS = 10_000;

/** The wait after failure number `attempt` (from 0): doubling, with jitter so that clients do not retry in step. */
export function backoffMillis(attempt: number): Millis {
  const most = Math.min(BACKOFF_FIRST_MILLIS * 2 ** attempt, BACKOFF_MAX_MILLIS);
  return most * (0.5 + Math.random() / 2);
}
