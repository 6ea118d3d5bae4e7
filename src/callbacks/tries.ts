// The pauses between attempts to deliver a duty.
import type { Millis } from '../vocabulary/values.ts';

const FIRST_PAUSE_MS = 1_000;
const PAUSE_FACTOR = 5;
const PAUSE_MS_MAX = 3_600_000;
/** Ensures attempts shortly before the duty's deadline, for receivers that have just recovered. */
const LAST_TRIES_MS = 20_000;
const LAST_PAUSE_MS = 5_000;
const JITTER = 0.2;

interface Failed {
  /** The number of failed attempts, at least 1. */
  readonly tries: number;
  /** The time left until the duty's deadline; Infinity if there is none. */
  readonly left: Millis;
  /** A number from 0 to 1. */
  readonly random: number;
}

/** Returns the pause before the next attempt: 1, 5, 25, 125 s …, but at most about 5 s in the last 20 s before the deadline. */
export function pauseAfter({ tries, left, random }: Failed): Millis {
  const jitter = 1 - JITTER + 2 * JITTER * random;
  const pause = Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * PAUSE_FACTOR ** (tries - 1)) * jitter;
  const untilLast = left - LAST_TRIES_MS;
  if (pause <= untilLast) return pause;
  return untilLast > 0 ? untilLast : Math.min(pause, LAST_PAUSE_MS * jitter);
}
