// Persists the service's clock regularly, so that a crash sets it back by little.
import type { Logger } from 'pino';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import type { Forum } from '../forum/forum.ts';
import { detach } from '../process/detach.ts';

/** Bounds how far a crash sets the clock back, and how late a log that rejects writes is noticed without moves. */
const CLOCK_PERSIST_INTERVAL_MS = 1_000;

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
