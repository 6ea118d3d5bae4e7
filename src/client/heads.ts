// The last event of each chamber that was read and checked, with its leaf.
import type { Hex } from '../vocabulary/values.ts';

export interface Head {
  readonly eventId: number;
  readonly leaf: Hex;
}

/** Those of the chambers that were read last. */
const CHAMBERS_MAX = 10_000;

export class Heads {
  readonly #heads = new Map<number, Head>();

  get(chamberId: number): Head | undefined {
    return this.#heads.get(chamberId);
  }

  /** An event that is not newer than the known one changes nothing. */
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
