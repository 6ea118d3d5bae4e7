// Compares the clock with the log's time and the last events of streams, which can't be in the future.
import { describeWaiting, waitingAt } from '../../log/clock-reset.ts';
import type { Check } from './check.ts';
import { ok, problem, warning } from './finding.ts';

const ADVICE = 'correct the clock, or, if the log was written with a wrong clock, run chambers admin reset-clock';
const STREAMS_NAMED_MAX = 10;

/** Never stops a start, because the service waits until the clock has caught up, and reports that. */
export const checkClock: Check = ({ log, time }) => {
  const now = log?.now ?? time();
  if (log !== undefined && log.lastAt > now) {
    const ahead = Math.round((log.lastAt - now) / 1000);
    return [problem('clock', `the log's time is ${ahead} s ahead of this clock: ${ADVICE}`)];
  }
  const waiting = log === undefined ? [] : waitingAt(log.reset, now).map(describeWaiting);
  const named = waiting.slice(0, STREAMS_NAMED_MAX).join(', ');
  if (waiting.length > 0) {
    const detail = `chambers and agents whose last event is in the future have to wait, ${waiting.length} in all: ${named}`;
    return [warning('clock', detail)];
  }
  return [ok('clock', `${new Date(now).toISOString()}, not behind the log`)];
};
