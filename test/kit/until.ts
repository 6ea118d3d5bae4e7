// Waits with a deadline. A loop without a deadline fails only at its test's time limit, without naming the condition.
import { setTimeout as sleep } from 'node:timers/promises';

const TIMEOUT_MILLIS = 25_000;
const POLL_MILLIS = 10;
/** Checks take CPU time, so the interval grows with the wait, which it prolongs by at most 5 %. */
const LONG_POLL_MILLIS = { max: 250, share: 0.05 };

/** Repeats the check until it does not throw, and resolves to its value. After the timeout, rejects with the check's last error. */
export async function eventually<T>(check: () => T | Promise<T>, millis = TIMEOUT_MILLIS): Promise<T> {
  const start = performance.now();
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > start + millis) throw error;
    }
    const share = millis > TIMEOUT_MILLIS ? (performance.now() - start) * LONG_POLL_MILLIS.share : 0;
    await sleep(Math.min(Math.max(share, POLL_MILLIS), LONG_POLL_MILLIS.max));
  }
}

/** Polls until the condition is true. */
export function until(condition: () => boolean | Promise<boolean>, millis = TIMEOUT_MILLIS): Promise<void> {
  return eventually(async () => {
    if (!(await condition())) throw new Error(`condition not met within ${millis} ms: ${condition}`);
  }, millis);
}
