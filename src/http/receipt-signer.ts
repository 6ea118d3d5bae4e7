// The response to a signed command, signed by the service if the caller asks for a receipt of the event.
import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { leafHash } from '../crypto/merkle.ts';
import { eventField, type ReceiptRequest, receiptBase, receiptParams, wantedReceipt } from '../crypto/receipt.ts';
import type { ServiceKey } from '../keys/service-keys.ts';
import { type ForumEvent, fromLine, toLine } from '../vocabulary/events.ts';
import type { ForumContext, HttpOptions } from './context.ts';
import { header } from './request.ts';
import { json, jsonText } from './response.ts';

const CHAMBERS_MAX = 10_000;

export interface Answered {
  /** The response's body. */
  readonly value: unknown;
  /** Null for a command that changed nothing, which has no receipt. */
  readonly event: ForumEvent | null;
  /** The request as received; null for an unsigned one. */
  readonly received: ReceiptRequest | null;
}

/** Answers accepted commands. */
export class ReceiptSigner {
  readonly #options: Pick<HttpOptions, 'forum' | 'keys' | 'sign'>;
  /** The thumbprint that the first line of each chamber records. */
  readonly #pinned = new LRUCache<number, { readonly thumbprint: string | undefined }>({
    // With `max` it would allocate for all of them at once.
    maxSize: CHAMBERS_MAX,
    sizeCalculation: () => 1,
  });

  constructor(options: Pick<HttpOptions, 'forum' | 'keys' | 'sign'>) {
    this.#options = options;
  }

  /** 200; a wish that can't be fulfilled gets it unsigned (RFC 9421, 5.2). */
  async respond(c: ForumContext, { value, event, received }: Answered): Promise<Response> {
    const asked = header(c, 'accept-signature');
    if (asked === undefined || event === null || received === null) return json(value);
    const wish = wantedReceipt(asked);
    if (wish === undefined) return json(value);
    const now = this.#options.forum.now();
    const key = await this.#keyFor(event, now);
    if (wish.keyid !== undefined && wish.keyid !== key.thumbprint) return json(value);
    const body = JSON.stringify(value);
    const response = responseOf(event, body, this.#options.forum.store.log.logId);
    const params = receiptParams(wish, { created: Math.floor(now / 1000), keyid: key.thumbprint });
    const base = receiptBase(wish.components, params, { request: received, response });
    const signature = await this.#options.sign(key.seed, Buffer.from(base));
    return jsonText(body, {
      'Content-Digest': response.contentDigest,
      Event: response.event,
      'Log-Id': response.logId,
      'Signature-Input': `${wish.label}=${params}`,
      Signature: `${wish.label}=:${Buffer.from(signature).toString('base64')}:`,
      'Cache-Control': 'no-transform',
    });
  }

  /** Agents trust the key that their chamber recorded. */
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

/** What the receipt covers of the response. An event's canonical line is what the log holds, be the event new or read back for a retry. */
function responseOf(event: ForumEvent, body: string, logId: string) {
  const leaf = leafHash(Buffer.from(toLine(event)));
  return {
    status: 200,
    contentDigest: `sha-256=:${hash('sha256', body, 'base64')}:`,
    event: eventField({ stream: event.chamberId ?? event.did, eventId: event.eventId, leaf }),
    logId,
  };
}
