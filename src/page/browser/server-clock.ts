// The service's clock as the browser can know it: its time in the document, and what has passed here since; notes of its
// stream correct what it took to load the page.

export class ServerClock {
  #start: number;

  constructor(now: number) {
    this.#start = now - performance.now();
  }

  now(): number {
    return this.#start + performance.now();
  }

  /** Corrects a clock that is behind: the service's time was at least this. NaN changes nothing. */
  atLeast(now: number): void {
    const start = now - performance.now();
    if (start > this.#start) this.#start = start;
  }
}
