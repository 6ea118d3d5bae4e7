// Caches responses that are the same for all readers: each body is built and compressed once, and all responses share its bytes. A body may
// contain a text that is withheld while the body is built, and its key does not show that. So each body is built through an OpenCache, which
// is opened before the first read for the body, and is kept only if the cache has not been emptied since.
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import type { Encoding } from '../vocabulary/accept.ts';

type Make = () => string | Promise<string>;

export class ResponseCache {
  readonly #bodies: LRUCache<string, SharedBody, Make>;
  #emptied = 0;

  constructor(bytesMax: number) {
    this.#bodies = new LRUCache({
      maxSize: bytesMax,
      // Counts the body twice, because the cache may later keep a compressed copy, which is smaller than the body.
      sizeCalculation: ({ bytes }, key) => 2 * bytes.length + key.length,
      fetchMethod: async (_key, _stale, { context: make }) => new SharedBody(await make()),
      ignoreFetchAbort: true,
    });
  }

  /** Must be called before the first read for a body. */
  open(): OpenCache {
    const openedAt = this.#emptied;
    return {
      body: async (key, make) => {
        if (openedAt !== this.#emptied) return new SharedBody(await make());
        return await this.#bodies.forceFetch(key.join(' '), { context: make });
      },
    };
  }

  /** Drops every body, including those being built, because a text in them may have been withheld. */
  empty(): void {
    this.#emptied++;
    this.#bodies.clear();
  }
}

export interface OpenCache {
  /** The key names the kind of the body and everything that the body depends on. */
  body(key: readonly (string | number | boolean)[], make: Make): Promise<SharedBody>;
}

const encoder = new TextEncoder();

export class SharedBody {
  readonly bytes: Buffer<ArrayBuffer>;
  #etag: string | undefined;
  readonly #encoded = new Map<Encoding, Promise<Buffer<ArrayBuffer>>>();

  constructor(text: string) {
    this.bytes = unpooled(encoder.encode(text));
  }

  /** Weak, because the compressed body has the same ETag. */
  get etag(): string {
    this.#etag ??= `W/"${hash('sha256', this.bytes, 'base64url')}"`;
    return this.#etag;
  }

  encoded(encoding: Encoding): Promise<Buffer<ArrayBuffer>> {
    let encoded = this.#encoded.get(encoding);
    if (encoded === undefined) {
      encoded = COMPRESS[encoding](this.bytes).then((bytes) => unpooled(new Uint8Array(bytes)));
      this.#encoded.set(encoding, encoded);
      // After a failure, the next reader tries again.
      encoded.catch(() => this.#encoded.delete(encoding));
    }
    return encoded;
  }
}

/** Fast levels, because Node has few threads for compression, and most bodies are read only a few times. */
const BROTLI_QUALITY = 9;
const GZIP_LEVEL = 1;

const [gzipped, brotli] = [promisify(gzip), promisify(brotliCompress)];

const COMPRESS = {
  br: (bytes: Buffer) => brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: (bytes: Buffer) => gzipped(bytes, { level: GZIP_LEVEL }),
};

/** Buffer.from and zlib take short buffers from a slab of 64 KiB, and the cache would keep the whole slab alive. */
function unpooled({ buffer }: Uint8Array<ArrayBuffer>): Buffer<ArrayBuffer> {
  return Buffer.from(buffer);
}
