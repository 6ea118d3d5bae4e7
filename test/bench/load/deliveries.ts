// Counts the messages that the consumers of one chamber receive, and times the delivery of each move.

const STALLED_MS = 60_000;

export class Deliveries {
  /** The milliseconds from sending each timed move to its delivery. */
  readonly latencies: number[] = [];
  /** The milliseconds from the response to a move to its delivery; 0 if the delivery came first. */
  readonly wakeUps: number[] = [];
  /** Messages by consumer. */
  readonly #counts: number[];
  /** The times at which the timed moves were sent, by index. */
  readonly #sentAt: (number | undefined)[] = [];
  readonly #answeredAt: (number | undefined)[] = [];
  #total = 0;
  /** The deliveries expected per consumer before the latest `more`. */
  #settled = 0;
  #awaited = 0;
  #onAll: (() => void) | undefined;

  constructor(consumers: number) {
    this.#counts = new Array<number>(consumers).fill(0);
  }

  /**
   * Resolves when every consumer has received that many more moves; rejects if one receives a different number or moves do not
   * arrive.
   */
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

  /** Records that a move was sent; `index` counts the moves expected by the latest `more`. */
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
    return new Error(`the consumers received ${least} to ${most} of ${this.#awaited} moves`);
  }
}
