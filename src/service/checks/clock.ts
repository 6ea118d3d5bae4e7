// The clock, compared with the log's time and its last events, which can't be in the future.
import { describeWaiting, waitingAt } from '../../log/clock-reset.ts';
import type { Check } from './check.ts';
import { ok, problem, warning } from './finding.ts';

const ADVICE = 'set it right, or, if the log was written by a wrong one, run chambers admin reset-clock';
const STREAMS_NAMED_MAX = 10;

/** It does not stop a start: the service waits for the right time, and reports that it does. */
export const checkClock: Check = ({ log, time }) => {
  const now = log?.now ?? time();
  if (log !== undefined && log.lastAt > now) {
    const ahead = Math.round((log.lastAt - now) / 1000);
    return [problem('clock', `the log's time is ${ahead} s ahead of this clock: ${ADVICE}`)];
  }
  const waiting = log === undefined ? [] : waitingAt(log.reset, now).map(describeWaiting);
  const named = waiting.slice(0, STREAMS_NAMED_MAX).join(', ');
  if (waiting.length > 0) {
    const detail = `chambers and agents wait: their last events are in the future, ${waiting.length} in all: ${named}`;
    return [warning('clock', detail)];
  }
  return [ok('clock', `${new Date(now).toISOString()}, not behind the log`)];
};
