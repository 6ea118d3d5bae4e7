// The last verified event of each chamber, with its leaf.
import type { Hex } from '../vocabulary/values.ts';

export interface Head {
  readonly eventId: number;
  readonly leaf: Hex;
}

/** Beyond this number, the least recently read chambers are forgotten. */
const CHAMBERS_MAX = 10_000;

export class Heads {
  readonly #heads = new Map<number, Head>();

  get(chamberId: number): Head | undefined {
    return this.#heads.get(chamberId);
  }

  /** Records the event, unless the recorded one is newer. */
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
