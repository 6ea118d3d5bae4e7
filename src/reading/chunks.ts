// Bytes that come in chunks, which a hostile sender may make of one byte each: as a list they would cost a hundred times their bytes, and
// as the arguments of a call too many.
import { concatBytes } from '@noble/hashes/utils.js';

const CHUNKS_PER_BLOCK = 4_096;

export class Chunks {
  /** Their bytes. */
  length = 0;
  #blocks: Uint8Array[] = [];
  #chunks: Uint8Array[] = [];

  add(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.length += chunk.length;
    this.#chunks.push(chunk);
    if (this.#chunks.length < CHUNKS_PER_BLOCK) return;
    this.#blocks.push(concatBytes(...this.#chunks));
    this.#chunks = [];
  }

  /** Returns the bytes, which are no longer held. */
  take(): Uint8Array {
    const bytes = concatBytes(...this.#blocks, ...this.#chunks);
    this.length = 0;
    this.#blocks = [];
    this.#chunks = [];
    return bytes;
  }
}
