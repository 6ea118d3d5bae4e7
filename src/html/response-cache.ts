// Responses that are the same for all readers: each body is made and compressed once, and all responses share its bytes.
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import type { Encoding } from '../vocabulary/accept.ts';

type Make = () => string | Promise<string>;

export class ResponseCache {
  readonly #bodies: LRUCache<string, SharedBody, Make>;

  constructor(bytesMax: number) {
    this.#bodies = new LRUCache({
      maxSize: bytesMax,
      // A body may be compressed later, to less than its size.
      sizeCalculation: ({ bytes }, key) => 2 * bytes.length + key.length,
      fetchMethod: async (_key, _stale, { context: make }) => new SharedBody(await make()),
      ignoreFetchAbort: true,
    });
  }

  /** The key contains the kind of body and everything that the body depends on. */
  async body(key: readonly (string | number | boolean)[], make: Make): Promise<SharedBody> {
    return await this.#bodies.forceFetch(key.join(' '), { context: make });
  }
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
      // After a failure the next reader tries again.
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
