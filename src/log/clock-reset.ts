// The log's time never falls by itself, even after a clock was ahead for so long that the service believed it. An operator resets it to the
// true time while no service runs on the log. No line changes, so streams whose last line is in the future wait until then
// (forum/decisions.ts), and all others continue. Phases that only the wrong time ended are open again.
import { type Millis, toTimestamp } from '../vocabulary/values.ts';
import type { StreamId } from './stream-id.ts';

/** Name in `meta` of the persisted clock. */
export const CLOCK_HIGH_WATER_MARK = 'clock_high_water_mark';
/** Name in `meta` of the last reset. */
export const CLOCK_RESET = 'clock_reset';

export interface WaitingStream {
  readonly stream: StreamId;
  /** `ts` of its last event. */
  readonly until: Millis;
}

export interface ClockReset {
  /** The log's time before the reset; events up to it no longer count for its time. */
  readonly from: Millis;
  /** The streams whose last event was in the future, by name. */
  readonly waiting: readonly WaitingStream[];
}

export const NO_RESET: ClockReset = { from: 0, waiting: [] };

export function parseReset(text: string | undefined): ClockReset {
  return text === undefined ? NO_RESET : (JSON.parse(text) as ClockReset);
}

/** The reset of a log to `now`; throws an Error of one line if its time is not in the future. */
export function resetOf(
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
