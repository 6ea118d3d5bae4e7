// Waiting that can be called off: for a while, until a time of the service's clock, or longer after each failure.
import type { Millis } from '../vocabulary/values.ts';
import type { ServiceClock } from './service-clock.ts';

const BACKOFF_FIRST_MILLIS = 200;
const BACKOFF_MAX_MILLIS = 10_000;
/** Long waits are taken in slices: a timer over 24.8 days fires at once, and either clock may be set meanwhile. */
const SLICE_MAX_MILLIS = 30_000;

/** Resolves after `millis`; rejects with the signal's reason when that comes first. */
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

export async function pauseUntil(at: Millis, clock: ServiceClock, signal: AbortSignal): Promise<void> {
  for (let left = at - clock.now(); left > 0; left = at - clock.now()) {
    await pause(Math.min(left, SLICE_MAX_MILLIS), signal);
  }
}

/** How long to wait after failure number `attempt` (from 0): doubling, and never in step with other clients. */
export function backoffMillis(attempt: number): Millis {
  const most = Math.min(BACKOFF_FIRST_MILLIS * 2 ** attempt, BACKOFF_MAX_MILLIS);
  return most * (0.5 + Math.random() / 2);
}
