// The only clock of the tests: it stands still until a test moves it.

/** 2030-01-01T00:00:00.000Z. */
export const START = Date.UTC(2030, 0, 1);
export const HOUR = 3_600_000;

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
