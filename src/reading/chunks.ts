// Collects bytes that arrive in chunks. A hostile sender may send one byte per chunk. An array of such chunks would take a hundred times
// their size, and exceed the argument limit of a single concatenation.
import { concatBytes } from '@noble/hashes/utils.js';

const CHUNKS_PER_BLOCK = 4_096;

export class Chunks {
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

  /** Returns the bytes and clears the buffer. */
  take(): Uint8Array {
    const bytes = concatBytes(...this.#blocks, ...this.#chunks);
    this.length = 0;
    this.#blocks = [];
    this.#chunks = [];
    return bytes;
  }
}
