// The leaves of the last lines of a chamber, 32 bytes each: a later move may name any of them.
import { HASH_BYTES } from '../../crypto/merkle.ts';

const CHUNK_LEAVES = 1_024;
const CHUNKS_MAX = 1_024;
/** So many of the last lines are known at least. */
export const RECENT_LEAVES_MIN = CHUNK_LEAVES * (CHUNKS_MAX - 1);

export class RecentLeaves {
  readonly #chunks = new Map<number, Uint8Array>();
  /** The events 1 to this one were added. */
  #count = 0;

  /** Event ids follow each other; of the same id again the last one counts. What follows a gap is not kept. */
  add(eventId: number, leaf: Uint8Array): void {
    if (eventId > this.#count + 1) return;
    this.#count = Math.max(this.#count, eventId);
    const number = Math.floor(eventId / CHUNK_LEAVES);
    const chunk = this.#chunks.get(number) ?? new Uint8Array(CHUNK_LEAVES * HASH_BYTES);
    this.#chunks.set(number, chunk).delete(number - CHUNKS_MAX);
    chunk.set(leaf, (eventId % CHUNK_LEAVES) * HASH_BYTES);
  }

  get(eventId: number): Uint8Array | undefined {
    if (eventId > this.#count) return undefined;
    const at = (eventId % CHUNK_LEAVES) * HASH_BYTES;
    return this.#chunks.get(Math.floor(eventId / CHUNK_LEAVES))?.subarray(at, at + HASH_BYTES);
  }
}
