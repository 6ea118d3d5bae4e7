// The last verified event of each chamber, with its leaf.
import type { Hex } from '../vocabulary/values.ts';

export interface Head {
  readonly eventId: number;
  readonly leaf: Hex;
}

/** The most recently read chambers. */
const CHAMBERS_MAX = 10_000;

export class Heads {
  readonly #heads = new Map<number, Head>();

  get(chamberId: number): Head | undefined {
    return this.#heads.get(chamberId);
  }

  /** Ignores an event that is not newer than the known one. */
  note(chamberId: number, { eventId, leaf }: Head): void {
    const known = this.#heads.get(chamberId);
    if (known !== undefined && known.eventId >= eventId) return;
    this.#heads.delete(chamberId);
    this.#heads.set(chamberId, { eventId, leaf });
    if (this.#heads.size <= CHAMBERS_MAX) return;
    const [oldest] = this.#heads.keys();
    if (oldest !== undefined) this.#heads.delete(oldest);
  }
}
