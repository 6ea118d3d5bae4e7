// Waits that end: a loop without a deadline fails only with the limit of its test, which does not say what was awaited.
import { setTimeout as sleep } from 'node:timers/promises';

/** The longer the wait, the rarer the checks, which cost CPU time that other tests wait for: it lasts some 5 % longer at most. */
const POLL_MILLIS = { min: 10, max: 250, share: 0.05 };
const TIMEOUT_MILLIS = 25_000;

/** Repeats the check until it does not throw, and returns its value; when the time is up, throws what the check threw last. */
export async function eventually<T>(check: () => T | Promise<T>, millis = TIMEOUT_MILLIS): Promise<T> {
  const start = performance.now();
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > start + millis) throw error;
    }
    const share = (performance.now() - start) * POLL_MILLIS.share;
    await sleep(Math.min(Math.max(share, POLL_MILLIS.min), POLL_MILLIS.max));
  }
}

/** Polls until the condition holds. */
export function until(condition: () => boolean | Promise<boolean>, millis = TIMEOUT_MILLIS): Promise<void> {
  return eventually(async () => {
    if (!(await condition())) throw new Error(`did not hold within ${millis} ms: ${condition}`);
  }, millis);
}
