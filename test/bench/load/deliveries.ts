// What the consumers of one chamber have got, and how long each move took to reach each of them.

const STALLED_MS = 60_000;

export class Deliveries {
  /** The times from sending each timed move. */
  readonly latencies: number[] = [];
  /** The times from the response to it; 0 if the consumer had it before. */
  readonly wakeUps: number[] = [];
  /** Messages by consumer. */
  readonly #counts: number[];
  /** When the n-th move was sent, for those whose way is timed. */
  readonly #sentAt: (number | undefined)[] = [];
  readonly #answeredAt: (number | undefined)[] = [];
  #total = 0;
  /** The deliveries to each consumer of what was expected before. */
  #settled = 0;
  #awaited = 0;
  #onAll: (() => void) | undefined;

  constructor(consumers: number) {
    this.#counts = new Array<number>(consumers).fill(0);
  }

  /** Resolves when every consumer has had that many moves more, and rejects when one has had others or some never come. */
  more(moves: number): Promise<void> {
    this.#settled = this.#awaited;
    this.#awaited += moves;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(this.#wrong()), STALLED_MS);
      this.#onAll = () => {
        clearTimeout(timer);
        this.#onAll = undefined;
        if (this.#counts.every((count) => count === this.#awaited)) resolve();
        else reject(this.#wrong());
      };
    });
  }

  /** Says that the move of that index, of those expected last, was sent. */
  sent(index: number, at: number): void {
    this.#sentAt[this.#settled + index] = at;
  }

  answered(index: number, at: number): void {
    this.#answeredAt[this.#settled + index] = at;
  }

  add(consumer: number, messages: number): void {
    const now = performance.now();
    const before = this.#counts[consumer] ?? 0;
    for (let index = before; index < before + messages; index++) {
      const sentAt = this.#sentAt[index];
      if (sentAt === undefined) continue;
      this.latencies.push(now - sentAt);
      this.wakeUps.push(now - (this.#answeredAt[index] ?? now));
    }
    this.#counts[consumer] = before + messages;
    this.#total += messages;
    if (this.#total >= this.#awaited * this.#counts.length) this.#onAll?.();
  }

  #wrong(): Error {
    const [least, most] = [Math.min(...this.#counts), Math.max(...this.#counts)];
    return new Error(`of ${this.#awaited} moves the consumers were delivered ${least} to ${most}`);
  }
}
