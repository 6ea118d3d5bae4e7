// Who waits for a chamber's log to grow. A wake-up carries no data: followers read on from their own cursor.

type Wake = () => void;

export class Followers {
  readonly #byChamber = new Map<number, Set<Wake>>();

  /** Calls `wake` after each commit to the chamber; returns what ends that. */
  follow(chamberId: number, wake: Wake): () => void {
    const wakes = this.#byChamber.get(chamberId) ?? new Set();
    this.#byChamber.set(chamberId, wakes.add(wake));
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0 && this.#byChamber.get(chamberId) === wakes) this.#byChamber.delete(chamberId);
    };
  }

  wake(chamberId: number): void {
    for (const wake of this.#byChamber.get(chamberId) ?? []) wake();
  }
}
