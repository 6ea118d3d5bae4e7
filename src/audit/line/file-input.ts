// The command's input: a file or a stream such as standard input. Further passes read it again if possible.
import { createReadStream } from 'node:fs';

export function fileInput(path: string, size: number) {
  return { size, isRepeatable: true, read: (): AsyncIterable<Uint8Array> => createReadStream(path) };
}

const KEPT_BYTES_MAX = 64 * 1024 * 1024;

/** A stream that can be read again unless it exceeds KEPT_BYTES_MAX. */
export class KeptInput {
  readonly size = undefined;
  isRepeatable = true;
  readonly #chunks: AsyncIterable<Uint8Array>;
  #kept: Uint8Array[] = [];
  #isRead = false;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks;
  }

  async *read(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#isRead) return yield* this.#kept;
    this.#isRead = true;
    let bytes = 0;
    for await (const chunk of this.#chunks) {
      bytes += chunk.length;
      this.isRepeatable &&= bytes <= KEPT_BYTES_MAX;
      if (this.isRepeatable) this.#kept.push(chunk);
      else this.#kept = [];
      yield chunk;
    }
  }
}
