// When a delivery is tried again.
import type { Millis } from '../vocabulary/values.ts';

const FIRST_PAUSE_MS = 1_000;
const PAUSE_FACTOR = 5;
const PAUSE_MS_MAX = 3_600_000;
/** A receiver that is healthy again just before the end of a duty still gets a try. */
const LAST_TRIES_MS = 20_000;
const LAST_PAUSE_MS = 5_000;
const JITTER = 0.2;

interface Failed {
  /** Failed tries, at least 1. */
  readonly tries: number;
  /** Until the duty ends at the latest; Infinity if nothing says. */
  readonly left: Millis;
  /** 0 to 1. */
  readonly random: number;
}

/** The pause before the next try: 1, 5, 25, 125 s …, and every 5 s at most in the last 20 s of the duty. */
export function pauseAfter({ tries, left, random }: Failed): Millis {
  const jitter = 1 - JITTER + 2 * JITTER * random;
  const pause = Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * PAUSE_FACTOR ** (tries - 1)) * jitter;
  const untilLast = left - LAST_TRIES_MS;
  if (pause <= untilLast) return pause;
  return untilLast > 0 ? untilLast : Math.min(pause, LAST_PAUSE_MS * jitter);
}

/** The pause before a try at an address that was busy; nothing was sent. */
export function pauseWhileBusy({ tries, left, random }: Failed): Millis {
  return Math.min(pauseAfter({ tries: Math.min(tries, 2), left, random }), LAST_PAUSE_MS);
}
