// Limits how much work runs at once, in total and per key. Keys take turns, and the work of one key is served in order of arrival.

interface ConcurrencyLimits {
  readonly max?: number;
  readonly perKeyMax?: number;
}

export interface Waiting {
  /** Resolves with true when the work may begin and must later call `release`, or with false after `leave`. */
  readonly turn: Promise<boolean>;
  readonly leave: () => void;
}

export class ConcurrencyLimit {
  readonly #max: number;
  readonly #perKeyMax: number;
  readonly #running = new Map<string, number>();
  /** The first key of the map is served next and then moves to the end. */
  readonly #waiting = new Map<string, ((isTurn: boolean) => void)[]>();
  #total = 0;

  constructor({ max = Number.POSITIVE_INFINITY, perKeyMax = Number.POSITIVE_INFINITY }: ConcurrencyLimits) {
    this.#max = max;
    this.#perKeyMax = perKeyMax;
  }

  async run<Result>(work: () => Promise<Result>, key = ''): Promise<Result> {
    await this.acquire(key)?.turn;
    try {
      return await work();
    } finally {
      this.release(key);
    }
  }

  /** Returns undefined if the work may begin at once; it must later call `release`. */
  acquire(key = ''): Waiting | undefined {
    if (this.#mayRun(key)) {
      this.#count(key, 1);
      return undefined;
    }
    const waiting = this.#waiting.get(key) ?? [];
    this.#waiting.set(key, waiting);
    const { promise: turn, resolve } = Promise.withResolvers<boolean>();
    waiting.push(resolve);
    return { turn, leave: () => this.#leave(key, resolve) };
  }

  release(key = ''): void {
    this.#count(key, -1);
    for (const [next, waiting] of this.#waiting) {
      if (!this.#mayRun(next)) continue;
      this.#waiting.delete(next);
      const begin = waiting.shift();
      if (waiting.length > 0) this.#waiting.set(next, waiting);
      this.#count(next, 1);
      begin?.(true);
      return;
    }
  }

  #leave(key: string, resolve: (isTurn: boolean) => void): void {
    const waiting = this.#waiting.get(key) ?? [];
    const index = waiting.indexOf(resolve);
    // The work has already started.
    if (index < 0) return;
    waiting.splice(index, 1);
    if (waiting.length === 0) this.#waiting.delete(key);
    resolve(false);
  }

  #mayRun(key: string): boolean {
    return this.#total < this.#max && (this.#running.get(key) ?? 0) < this.#perKeyMax;
  }

  #count(key: string, change: 1 | -1): void {
    this.#total += change;
    const running = (this.#running.get(key) ?? 0) + change;
    if (running > 0) this.#running.set(key, running);
    else this.#running.delete(key);
  }
}
