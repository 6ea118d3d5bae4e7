// Limits how much work of one kind runs at once: each piece takes a slot, in the order of arrival.

/** One piece of work holds a slot, or waits for it, until it is released. */
export interface Slot {
  /** Resolves when this work has a slot; at once when it has it already. */
  take(): Promise<void>;
  release(): void;
}

export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Opens a slot for one piece of work, which does not hold it yet. */
  open(): Slot {
    let taken: Promise<void> | undefined;
    return {
      take: () => {
        taken ??= this.#take();
        return taken;
      },
      release: () => {
        if (taken !== undefined) this.#give();
      },
    };
  }

  async #take(): Promise<void> {
    if (this.#free === 0) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#free--;
  }

  #give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}

/** One piece of work for each key at a time, in the order of arrival. */
export class TurnsByKey {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Resolves when it is the caller's turn, which ends when `work` has settled. */
  async take(key: string, work: Promise<unknown>): Promise<void> {
    const before = this.#last.get(key);
    const turn = Promise.allSettled([work]).then(() => {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    });
    this.#last.set(key, turn);
    await before;
  }
}
