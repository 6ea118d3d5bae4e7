// Persists the service's clock from time to time, so that it goes back by little in a crash.
import type { Logger } from 'pino';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import type { Forum } from '../forum/forum.ts';
import { detach } from '../process/detach.ts';

/** The most that the service's clock can go back in a crash, and how soon a log that takes no writes is noticed without moves. */
const CLOCK_PERSIST_INTERVAL_MS = 1_000;

/** One after the other, however long one takes. */
export function persistClockRegularly(forum: Forum, logger: Logger): NodeJS.Timeout {
  const failures = new RepeatedLog();
  let isPersisting = false;
  const persist = async () => {
    if (isPersisting) return;
    isPersisting = true;
    try {
      await forum.persistClock();
      failures.end('write', () => logger.info('the log takes writes again'));
    } catch (error) {
      const { message } = error as Error;
      failures.report('write', message, (repeats) =>
        logger.warn({ err: error, ...repeats }, 'the log takes no writes'),
      );
    }
    isPersisting = false;
  };
  return setInterval(() => detach(persist()), CLOCK_PERSIST_INTERVAL_MS).unref();
}
