// The service's clock as the browser can know it: its time in the document, and what has passed here since.

export class ServerClock {
  readonly #start: number;

  constructor(now: number) {
    this.#start = now - performance.now();
  }

  now(): number {
    return this.#start + performance.now();
  }
}
