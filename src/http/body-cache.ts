// Bodies that are the same for all readers of a chamber at its head: each is made once, and its responses share the bytes.
import { LRUCache } from 'lru-cache';

type Make = () => string | Promise<string>;

export class BodyCache {
  readonly #bodies: LRUCache<string, Buffer<ArrayBuffer>, Make>;

  constructor(bytesMax: number) {
    this.#bodies = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ length }, key) => length + key.length,
      fetchMethod: async (_key, _stale, { context: make }) => Buffer.from(await make()),
      ignoreFetchAbort: true,
    });
  }

  /** The key names all that the body depends on. */
  async body(key: readonly (string | number | boolean)[], make: Make): Promise<Buffer<ArrayBuffer>> {
    return await this.#bodies.forceFetch(key.join(' '), { context: make });
  }
}
