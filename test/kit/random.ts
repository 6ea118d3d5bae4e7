// Reproducible random numbers: the same seed yields the same choices (mulberry32).

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a number of at least 0 and less than 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer from 0 to max − 1. */
  below(max: number): number {
    return Math.floor(this.next() * max);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    if (items.length === 0) throw new RangeError('the list is empty');
    return items[this.below(items.length)] as Item;
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)));
  }
}

/** Seeds from the environment variable, or with a new seed; prints the seed, so that a run can be repeated. */
export function seededBy(variable: string): Random {
  const seed = Number(process.env[variable] ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`${variable}=${seed}`);
  return new Random(seed);
}
