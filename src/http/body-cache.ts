// Bodies that are the same for all readers of a chamber at its head: each is made once, and its responses share the bytes.
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

const encoder = new TextEncoder();

type Make = () => string | Promise<string>;

interface Tagged {
  readonly body: Buffer<ArrayBuffer>;
  readonly etag: string;
}

export class BodyCache {
  readonly #bodies: LRUCache<string, Buffer<ArrayBuffer>, Make>;
  readonly #etags = new WeakMap<Buffer<ArrayBuffer>, string>();

  constructor(bytesMax: number) {
    this.#bodies = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ length }, key) => length + key.length,
      fetchMethod: async (_key, _stale, { context: make }) => unpooled(await make()),
      ignoreFetchAbort: true,
    });
  }

  /** The key names all that the body depends on. */
  async body(key: readonly (string | number | boolean)[], make: Make): Promise<Buffer<ArrayBuffer>> {
    return await this.#bodies.forceFetch(key.join(' '), { context: make });
  }

  /** Returns a body with an ETag, which is made once for a body that is kept. */
  async tagged(key: readonly (string | number | boolean)[], make: Make): Promise<Tagged> {
    const body = await this.body(key, make);
    const etag = this.#etags.get(body) ?? `W/"${hash('sha256', body, 'base64url')}"`;
    this.#etags.set(body, etag);
    return { body, etag };
  }
}

/** Buffer.from would cut a short text's bytes from a slab of 64 KiB, which the cache would then hold as a whole. */
function unpooled(text: string): Buffer<ArrayBuffer> {
  return Buffer.from(encoder.encode(text).buffer);
}
