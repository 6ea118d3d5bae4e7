// Waits, and the backoff before a request is repeated. All requests to other operators' services use them.
import type { Millis } from '../vocabulary/values.ts';
import { httpInstantOf } from './http-date.ts';

/** setTimeout fires at once for a longer time. */
const TIMER_MILLIS_MAX = 2 ** 31 - 1;

/** Limits the time of one timer. It then fires early, not at once. */
export function timerMillis(millis: Millis): Millis {
  return Math.min(millis, TIMER_MILLIS_MAX);
}

/** Resolves after `millis`, however long; rejects with the signal's reason if the signal aborts first. */
export async function pause(millis: Millis, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  // NaN means a long wait, because a short one could turn a surrounding loop into a busy loop.
  let left = Number.isNaN(millis) ? TIMER_MILLIS_MAX : millis;
  do {
    await oneTimer(timerMillis(left), signal);
    left -= TIMER_MILLIS_MAX;
  } while (left > 0);
}

function oneTimer(millis: Millis, signal?: AbortSignal): Promise<void> {
  return new Promise<void>((resolve, reject) => {
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
/** The maximum wait that a service may request. */
const ASKED_MILLIS_MAX = 60_000;

/**
 * The wait after failure number `failures` (from 0): doubling, with jitter so that clients do not retry at the same time. The wait that
 * the service requests is added and never replaces the backoff, because a gateway may request none.
 */
export function backoffMillis(failures: number, askedMillis: Millis = 0): Millis {
  const most = Math.min(BACKOFF_FIRST_MILLIS * 2 ** failures, BACKOFF_MAX_MILLIS);
  return Math.min(askedMillis, ASKED_MILLIS_MAX) + most * (0.5 + Math.random() / 2);
}

/** The wait in Retry-After, as seconds or a date (RFC 9110, 10.2.3); undefined if it is absent or invalid. */
export function retryAfterMillis(headers: Pick<Headers, 'get'>, now: Millis): Millis | undefined {
  const text = headers.get('Retry-After')?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const at = httpInstantOf(text);
  if (Number.isNaN(at)) return undefined;
  // Both dates come from the machine that responded.
  const respondedAt = httpInstantOf(headers.get('Date'));
  return Math.max(0, at - (Number.isNaN(respondedAt) ? now : respondedAt));
}
