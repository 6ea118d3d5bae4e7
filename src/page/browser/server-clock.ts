// The service's clock, estimated: the time in the document and the time since. Notes of the stream correct for the loading time.
export class ServerClock {
  #start: number;

  constructor(now: number) {
    this.#start = now - performance.now();
  }

  now(): number {
    return this.#start + performance.now();
  }

  /** Corrects a clock that is behind: the service's time is at least `now`. NaN changes nothing. */
  atLeast(now: number): void {
    const start = now - performance.now();
    if (start > this.#start) this.#start = start;
  }
}
