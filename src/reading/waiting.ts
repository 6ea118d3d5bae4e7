// Timers and retry backoff for all requests to other operators' services.
import type { Millis } from '../vocabulary/values.ts';
import { httpInstantOf } from './http-date.ts';

/** For a longer delay, setTimeout fires at once. */
const TIMER_MILLIS_MAX = 2 ** 31 - 1;

/** Caps the delay of one timer, so that a timer with a longer delay fires early instead of at once. */
export function timerMillis(millis: Millis): Millis {
  return Math.min(millis, TIMER_MILLIS_MAX);
}

/** Resolves after `millis`, which may exceed the limit of one timer; rejects with the signal's reason if the signal aborts first. */
export async function pause(millis: Millis, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  // NaN means a long wait, because a short one could turn a surrounding loop into a busy loop.
  let left = Number.isNaN(millis) ? TIMER_MILLIS_MAX : millis;
  do {
    await waitOnce(timerMillis(left), signal);
    left -= TIMER_MILLIS_MAX;
  } while (left > 0);
}

function waitOnce(millis: Millis, signal?: AbortSignal): Promise<void> {
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

/**
 * Returns a signal that aborts when the outer signal aborts, when the time is up, or when abort() is called; release() disables all three.
 * AbortSignal.any over AbortSignal.timeout is not enough: Node 20 may garbage-collect both, and then the timeout never fires.
 */
export function linkedSignal(
  outer: AbortSignal | undefined,
  limitMillis?: number,
): { readonly signal: AbortSignal; readonly abort: (reason?: Error) => void; readonly release: () => void } {
  const controller = new AbortController();
  const follow = () => controller.abort(outer?.reason);
  const expire = () => controller.abort(new Error(`timed out after ${limitMillis} ms`));
  const timer = limitMillis === undefined ? undefined : setTimeout(expire, timerMillis(limitMillis));
  outer?.addEventListener('abort', follow, { once: true });
  if (outer?.aborted) follow();
  const release = () => {
    clearTimeout(timer);
    outer?.removeEventListener('abort', follow);
  };
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), release };
}

const BACKOFF_FIRST_MILLIS = 200;
const BACKOFF_MAX_MILLIS = 10_000;
/** The maximum wait that a service may request. */
const REQUESTED_MILLIS_MAX = 60_000;

/**
 * Returns the wait after failure number `failures` (from 0). It doubles each time, with jitter so that clients do not retry at the same
 * time. The wait that the service requests is added to the backoff and never replaces it, because a gateway may request 0 s.
 */
export function backoffMillis(failures: number, requestedMillis: Millis = 0): Millis {
  const most = Math.min(BACKOFF_FIRST_MILLIS * 2 ** failures, BACKOFF_MAX_MILLIS);
  return Math.min(requestedMillis, REQUESTED_MILLIS_MAX) + most * (0.5 + Math.random() / 2);
}

/** Parses Retry-After, in seconds or as a date (RFC 9110, 10.2.3); returns undefined if the header is absent or invalid. */
export function retryAfterMillis(headers: Pick<Headers, 'get'>, now: Millis): Millis | undefined {
  const text = headers.get('Retry-After')?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const at = httpInstantOf(text);
  if (Number.isNaN(at)) return undefined;
  // Both dates come from the same clock, the responder's.
  const respondedAt = httpInstantOf(headers.get('Date'));
  return Math.max(0, at - (Number.isNaN(respondedAt) ? now : respondedAt));
}
