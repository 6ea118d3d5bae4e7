// A wait that ends: a loop without a deadline fails only with the limit of its test, which does not say what was awaited.
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MILLIS = 10;
const TIMEOUT_MILLIS = 25_000;

/** Polls until the condition holds. */
export async function until(condition: () => boolean | Promise<boolean>, millis = TIMEOUT_MILLIS): Promise<void> {
  const end = performance.now() + millis;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`did not hold within ${millis} ms: ${condition}`);
    await sleep(POLL_MILLIS);
  }
}
