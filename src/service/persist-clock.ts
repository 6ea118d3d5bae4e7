// Persists the service's clock regularly, so that a crash sets the clock back only a little.
import type { Logger } from 'pino';
import { RepeatedLog } from '../diagnostics/repeated-log.ts';
import type { Forum } from '../forum/forum.ts';
import { detach } from '../process/detach.ts';

/** Limits how far a crash sets the clock back, and how long rejected writes go unnoticed if there are no moves. */
const CLOCK_PERSIST_INTERVAL_MS = 1_000;

export function persistClockRegularly(forum: Forum, logger: Logger): NodeJS.Timeout {
  const failures = new RepeatedLog();
  let isPersisting = false;
  const persist = async () => {
    if (isPersisting) return;
    isPersisting = true;
    try {
      await forum.persistClock();
      failures.end('write', () => logger.info('the log accepts writes again'));
    } catch (error) {
      const { message } = error as Error;
      failures.report('write', message, (repeats) =>
        logger.warn({ err: error, ...repeats }, 'the log accepts no writes'),
      );
    }
    isPersisting = false;
  };
  return setInterval(() => detach(persist()), CLOCK_PERSIST_INTERVAL_MS).unref();
}
