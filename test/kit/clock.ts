// The clocks of the tests: one stands still until a test moves it, one runs with the machine's.
import type { TimeSource } from '../../src/forum/service-clock.ts';

/** 2030-01-01T00:00:00.000Z. */
export const START = Date.UTC(2030, 0, 1);
export const HOUR = 3_600_000;

/** A clock by which time passes too: however it is moved, it did not jump. */
export function passing(read: () => number): TimeSource {
  return { time: read, elapsed: read };
}

/** The clock also works if a test replaces Date.now. */
const { now: machineNow } = Date;

/** The machine's clock, which a test moves ahead. */
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

/** It is right, also while the clock of the machine that it stands for has jumped. */
export class TestClock {
  #millis = START;
  #jumpedMillis = 0;

  /** The machine's, for a service. */
  readonly source: TimeSource = { time: () => this.#millis + this.#jumpedMillis, elapsed: () => this.#millis };

  readonly read = (): number => this.#millis;

  get seconds(): number {
    return Math.floor(this.#millis / 1000);
  }

  /** The machine's clock is set so far ahead, or back, of what is right. */
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
