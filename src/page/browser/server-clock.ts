// Estimates the service's clock: the time in the document plus the time since then. Notes of the stream correct for the loading time.
export class ServerClock {
  #start: number;

  constructor(now: number) {
    this.#start = now - performance.now();
  }

  now(): number {
    return this.#start + performance.now();
  }

  /** Advances the clock if it is behind `now`, which the service's time has reached. NaN has no effect. */
  atLeast(now: number): void {
    const start = now - performance.now();
    if (start > this.#start) this.#start = start;
  }
}
