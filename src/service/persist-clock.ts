// Persists the service's clock from time to time, so that it goes back by little in a crash.
import type { Forum } from '../forum/forum.ts';
import { detach } from '../process/detach.ts';

/** The most that the service's clock can go back in a crash, and how soon a log that takes no writes is noticed without moves. */
const CLOCK_PERSIST_INTERVAL_MS = 2_000;

/** One after the other, however long one takes. */
export function persistClockRegularly(forum: Forum): NodeJS.Timeout {
  let isPersisting = false;
  const persist = async () => {
    if (isPersisting) return;
    isPersisting = true;
    await persistClock(forum);
    isPersisting = false;
  };
  return setInterval(() => detach(persist()), CLOCK_PERSIST_INTERVAL_MS).unref();
}

/** A time that can't be written, on a full disk for example, is written with a later event or at the next interval. */
export async function persistClock(forum: Forum): Promise<void> {
  await forum.persistClock().catch(() => {});
}
