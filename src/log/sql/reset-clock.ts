// Resets a log's time to the true one, while no service runs on it.
import type { Millis } from '../../vocabulary/values.ts';
import { CLOCK_HIGH_WATER_MARK, CLOCK_RESET, type ClockReset, resetOf } from '../clock-reset.ts';
import { toStream } from './stored-line.ts';
import { type WritableLog, writeMeta } from './whole-log.ts';

/** By the log's clock, unless a time is given. Throws an Error of one line if the log's time is not in the future, or a service runs on the log. */
export async function resetClock(log: WritableLog, time?: Millis): Promise<ClockReset> {
  await log.requireNoService();
  const now = time ?? (await log.now());
  const ahead = await log.query<{ readonly stream: string; readonly until: number }>(
    `SELECT stream, max(at) AS until FROM ${log.dialect.lines} WHERE at > $1 GROUP BY stream ORDER BY until`,
    [now],
  );
  const waiting = ahead.map(({ stream, until }) => ({ stream: toStream(stream), until }));
  const reset = resetOf({ lastAt: await log.lastAt(), waiting }, now);
  await writeMeta(log, CLOCK_RESET, JSON.stringify(reset));
  await writeMeta(log, CLOCK_HIGH_WATER_MARK, String(now));
  await log.commit();
  return reset;
}
