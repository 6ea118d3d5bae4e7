// The log's time never goes back on its own, even if a clock was ahead so long that the service trusted it. An operator resets the log's time
// to the true time while no service runs on the log. No line changes, so streams whose last line is in the future wait until that time
// (forum/decisions.ts); all others continue. Phases that ended only because of the wrong time are open again.
import { type Millis, toTimestamp } from '../vocabulary/values.ts';
import type { StreamId } from './stream-id.ts';

/** `meta` key of the persisted clock. */
export const CLOCK_HIGH_WATER_MARK = 'clock_high_water_mark';
/** `meta` key of the last reset. */
export const CLOCK_RESET = 'clock_reset';

export interface WaitingStream {
  readonly stream: StreamId;
  /** `ts` of the stream's last event. */
  readonly until: Millis;
}

export interface ClockReset {
  /** The log's time before the reset. Events up to this time no longer advance the log's time. */
  readonly from: Millis;
  /** The streams whose last event was in the future. */
  readonly waiting: readonly WaitingStream[];
}

export const NO_RESET: ClockReset = { from: 0, waiting: [] };

export function parseReset(text: string | undefined): ClockReset {
  return text === undefined ? NO_RESET : (JSON.parse(text) as ClockReset);
}

/** Plans the reset of a log to `now`. Throws a single-line Error if the log's time is not in the future. */
export function planReset(
  log: { readonly lastAt: Millis; readonly waiting: readonly WaitingStream[] },
  now: Millis,
): ClockReset {
  const { lastAt, waiting } = log;
  if (lastAt > now) return { from: lastAt, waiting };
  throw new Error(
    `the log's time is ${toTimestamp(lastAt)}, which is not in the future: it is ${toTimestamp(now)} by this clock`,
  );
}

export function waitingAt({ waiting }: ClockReset, now: Millis): readonly WaitingStream[] {
  return waiting.filter(({ until }) => until > now);
}

export function describeWaiting({ stream, until }: WaitingStream): string {
  return `${typeof stream === 'number' ? `chamber ${stream}` : stream} until ${toTimestamp(until)}`;
}
