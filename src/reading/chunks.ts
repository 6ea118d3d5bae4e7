// Bytes that come in chunks, which a hostile sender may make of one byte each: as a list they would cost a hundred times their bytes, and
// as the arguments of a call too many.
import { concatBytes } from '@noble/hashes/utils.js';

const CHUNKS_MAX = 4_096;

export class Chunks {
  /** Their bytes. */
  length = 0;
  #chunks: Uint8Array[] = [];

  add(chunk: Uint8Array): void {
    this.length += chunk.length;
    this.#chunks.push(chunk);
    if (this.#chunks.length === CHUNKS_MAX) this.#chunks = [concatBytes(...this.#chunks)];
  }

  /** Returns the bytes, which are no longer held. */
  take(): Uint8Array {
    const bytes = concatBytes(...this.#chunks);
    this.length = 0;
    this.#chunks = [];
    return bytes;
  }
}
