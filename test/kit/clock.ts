// The clocks of the tests: one stands still until a test moves it, one runs with the machine's.

/** 2030-01-01T00:00:00.000Z. */
export const START = Date.UTC(2030, 0, 1);
export const HOUR = 3_600_000;

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

export class TestClock {
  #millis = START;

  readonly read = (): number => this.#millis;

  get seconds(): number {
    return Math.floor(this.#millis / 1000);
  }

  set(millis: number): void {
    this.#millis = millis;
  }

  advance(millis: number): void {
    this.#millis += millis;
  }
}
