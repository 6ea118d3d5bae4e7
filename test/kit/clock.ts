// Clocks for tests: TestClock stands still until a test moves it; AdvancedClock runs with the machine's clock.
import type { TimeSource } from '../../src/forum/service-clock.ts';

/** 2030-01-01T00:00:00.000Z. */
export const START = Date.UTC(2030, 0, 1);
export const HOUR = 3_600_000;

/** Returns a clock whose changes count as passing time, never as a jump. */
export function passing(read: () => number): TimeSource {
  return { time: read, elapsed: read };
}

/** Saved so that the clock still works if a test replaces Date.now. */
const { now: machineNow } = Date;

/** The machine's clock plus an offset that the test sets. */
export class AdvancedClock {
  #aheadMillis = 0;

  readonly read = (): number => machineNow() + this.#aheadMillis;

  get aheadMillis(): number {
    return this.#aheadMillis;
  }

  get seconds(): number {
    return Math.floor(this.read() / 1000);
  }

  advance(millis: number): void {
    this.#aheadMillis += millis;
  }
}

/** The correct time, unaffected by jumps of the machine's clock. */
export class TestClock {
  #millis = START;
  #jumpedMillis = 0;

  /** The machine's clock, as the service reads it. */
  readonly source: TimeSource = { time: () => this.#millis + this.#jumpedMillis, elapsed: () => this.#millis };

  readonly read = (): number => this.#millis;

  get seconds(): number {
    return Math.floor(this.#millis / 1000);
  }

  /** Sets the machine's clock ahead of or behind the correct time. */
  jumpTo(millis: number): void {
    this.#jumpedMillis = millis;
  }

  set(millis: number): void {
    this.#millis = millis;
  }

  advance(millis: number): void {
    this.#millis += millis;
  }
}
