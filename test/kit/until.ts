// Waits that end: a loop without a deadline fails only with the limit of its test, which does not say what was awaited.
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MILLIS = 10;
const TIMEOUT_MILLIS = 25_000;

/** Repeats the check until it does not throw, and returns its value; when the time is up, throws what the check threw last. */
export async function eventually<T>(check: () => T | Promise<T>, millis = TIMEOUT_MILLIS): Promise<T> {
  const end = performance.now() + millis;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    await sleep(POLL_MILLIS);
  }
}

/** Polls until the condition holds. */
export function until(condition: () => boolean | Promise<boolean>, millis = TIMEOUT_MILLIS): Promise<void> {
  return eventually(async () => {
    if (!(await condition())) throw new Error(`did not hold within ${millis} ms: ${condition}`);
  }, millis);
}
