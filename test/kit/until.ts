// Waits that end: a loop without a deadline fails only with the limit of its test, which does not say what was awaited.
import { setTimeout as sleep } from 'node:timers/promises';

const TIMEOUT_MILLIS = 25_000;
const POLL_MILLIS = 10;
/** A wait that may be longer is checked more rarely the longer it lasts, since checks take CPU time: it lasts some 5 % longer at most. */
const LONG_POLL_MILLIS = { max: 250, share: 0.05 };

/** Repeats the check until it does not throw, and returns its value; when the time is up, throws what the check threw last. */
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

/** Polls until the condition holds. */
export function until(condition: () => boolean | Promise<boolean>, millis = TIMEOUT_MILLIS): Promise<void> {
  return eventually(async () => {
    if (!(await condition())) throw new Error(`did not hold within ${millis} ms: ${condition}`);
  }, millis);
}
