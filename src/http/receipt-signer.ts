// Responds to accepted commands; if the caller asks for a receipt of the event, the service signs the response.
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { eventField, type ReceiptRequest, receiptBase, receiptParams, wantedReceipt } from '../crypto/receipt.ts';
import { storedLeaf } from '../crypto/stub.ts';
import type { ServiceKey } from '../keys/service-keys.ts';
import { type ForumEvent, fromLine, toLine } from '../vocabulary/events.ts';
import type { ForumContext, HttpOptions } from './context.ts';
import { header } from './request.ts';
import { json, jsonText } from './response.ts';

const CHAMBERS_MAX = 10_000;

export interface CommandResult {
  /** The response's body. */
  readonly value: unknown;
  /** Null for a command that changed nothing, which has no receipt. */
  readonly event: ForumEvent | null;
  /** The request as received; null for an unsigned one. */
  readonly received: ReceiptRequest | null;
}

export class ReceiptSigner {
  readonly #options: Pick<HttpOptions, 'forum' | 'keys' | 'sign'>;
  /** The receipts key that each chamber's first line records, by chamberId. */
  readonly #pinned = new LRUCache<number, { readonly thumbprint: string | undefined }>({
    // `max` would allocate all slots at once.
    maxSize: CHAMBERS_MAX,
    sizeCalculation: () => 1,
  });

  constructor(options: Pick<HttpOptions, 'forum' | 'keys' | 'sign'>) {
    this.#options = options;
  }

  /** If the requested receipt can't be produced, the response is unsigned (RFC 9421, 5.2). */
  async respond(c: ForumContext, { value, event, received }: CommandResult): Promise<Response> {
    const acceptSignature = header(c, 'accept-signature');
    if (acceptSignature === undefined || event === null || received === null) return json(value);
    const wanted = wantedReceipt(acceptSignature);
    if (wanted === undefined) return json(value);
    const now = this.#options.forum.now();
    const key = await this.#keyFor(event, now);
    if (wanted.keyid !== undefined && wanted.keyid !== key.thumbprint) return json(value);
    const body = JSON.stringify(value);
    const response = responseOf(event, body, this.#options.forum.store.log.logId);
    const params = receiptParams(wanted, { created: Math.floor(now / 1000), keyid: key.thumbprint });
    const base = receiptBase(wanted.components, params, { request: received, response });
    const signature = await this.#options.sign(key.seed, Buffer.from(base));
    return jsonText(body, {
      'Content-Digest': response.contentDigest,
      Event: response.event,
      'Log-Id': response.logId,
      'Signature-Input': `${wanted.label}=${params}`,
      Signature: `${wanted.label}=:${Buffer.from(signature).toString('base64')}:`,
      'Cache-Control': 'no-transform',
    });
  }

  /** Agents trust the key that their chamber records. */
  async #keyFor(event: ForumEvent, now: number): Promise<ServiceKey> {
    const { forum, keys } = this.#options;
    const { chamberId } = event;
    if (!keys.isRotated || chamberId === null) return keys.current('receipts', now);
    let pinned = this.#pinned.get(chamberId);
    if (pinned === undefined) {
      const { ndjson } = await forum.store.log.readPage(chamberId, 0, 1);
      const first = fromLine(ndjson.toString().trimEnd());
      pinned = { thumbprint: first.type === 'chamber.created' ? first.payload.serviceKeys?.receipts : undefined };
      this.#pinned.set(chamberId, pinned);
    }
    return keys.pinned('receipts', pinned.thumbprint, now);
  }
}

/** Returns the parts of the response that the receipt covers. */
function responseOf(event: ForumEvent, body: string, logId: string) {
  const leaf = storedLeaf(Buffer.from(toLine(event)));
  return {
    status: 200,
    contentDigest: `sha-256=:${hash('sha256', body, 'base64')}:`,
    event: eventField({ stream: event.chamberId ?? event.did, eventId: event.eventId, leaf }),
    logId,
  };
}
