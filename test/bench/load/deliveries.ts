// What the consumers of one chamber have got, and how long each move took to reach each of them.

const STALLED_MS = 60_000;

export class Deliveries {
  readonly latencies: number[] = [];
  /** Messages by consumer. */
  readonly #counts: number[];
  /** When the n-th move was sent, for those whose way is timed. */
  readonly #sentAt: (number | undefined)[] = [];
  #total = 0;
  #awaited = Number.POSITIVE_INFINITY;
  #onAll: (() => void) | undefined;

  constructor(consumers: number) {
    this.#counts = new Array<number>(consumers).fill(0);
  }

  /** The move after `movesBefore` others is on its way. */
  sent(movesBefore: number, at: number): void {
    this.#sentAt[movesBefore] = at;
  }

  add(consumer: number, messages: number): void {
    const now = performance.now();
    const before = this.#counts[consumer] ?? 0;
    for (let index = before; index < before + messages; index++) {
      const sentAt = this.#sentAt[index];
      if (sentAt !== undefined) this.latencies.push(now - sentAt);
    }
    this.#counts[consumer] = before + messages;
    this.#total += messages;
    if (this.#total >= this.#awaited) this.#onAll?.();
  }

  /** Resolves when every consumer has had that many moves, and rejects when one has had more or some never come. */
  all(moves: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(this.#describe(moves))), STALLED_MS);
      this.#onAll = () => {
        clearTimeout(timer);
        this.#onAll = undefined;
        if (this.#counts.every((count) => count === moves)) resolve();
        else reject(new Error(this.#describe(moves)));
      };
      this.#awaited = moves * this.#counts.length;
      if (this.#total >= this.#awaited) this.#onAll();
    });
  }

  #describe(moves: number): string {
    const [least, most] = [Math.min(...this.#counts), Math.max(...this.#counts)];
    return `of ${moves} moves the consumers were delivered ${least} to ${most}`;
  }
}
