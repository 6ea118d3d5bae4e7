// The receipts of an agent's own commands: each is verified under the key that its chamber pins, and kept. What the agent has
// verified of a chamber is what it says in its next move that it has seen.
import { toJwk } from '../crypto/jwk.ts';
import {
  DIRECTORY_PATH,
  type DirectoryKey,
  type KeyDirectory,
  keyProblem,
  parseDirectory,
} from '../crypto/key-directory.ts';
import { type ParsedReceipt, parseReceipt, type Receipt } from '../crypto/receipt.ts';
import { isSignedBy } from '../crypto/verify.ts';
import { LOG_ID, toHex } from '../vocabulary/values.ts';
import { ClientError } from './error.ts';
import { follow, START } from './events.ts';
import { exchange, type Page, type Service } from './exchange.ts';
import type { Head } from './heads.ts';
import type { ReceiptStore } from './stores.ts';

const CHAMBERS_MAX = 10_000;

export class ReceiptKeeper {
  readonly #service: Service;
  readonly #store: ReceiptStore;
  #keys: KeyDirectory = new Map();
  /** The pinned key by chamber; undefined if its first line records none, as in earlier releases. */
  readonly #pinned = new Map<number, string | undefined>();
  #asked: Promise<Asked> | undefined;

  constructor(service: Service, store: ReceiptStore) {
    this.#service = service;
    this.#store = store;
  }

  /** What a move in the chamber says of it: the last event that was read or receipted; undefined if the service takes none. */
  async seen(chamberId: number, signal?: AbortSignal): Promise<Head | undefined> {
    const { heads } = this.#service;
    const { logId, takesSeen } = await this.#readService(signal);
    if (!takesSeen) return undefined;
    if (heads.get(chamberId) === undefined) {
      const kept = await this.#store.newest({ logId, stream: chamberId });
      if (kept !== undefined) this.#note(parseReceipt(kept));
    }
    return heads.get(chamberId);
  }

  /** Verifies and keeps the receipt of a command; throws CLIENT_ERR_RECEIPT for one that does not hold. */
  async take(receipt: Receipt, stream: number | string | undefined, signal?: AbortSignal): Promise<void> {
    const parsed = parse(receipt);
    if (stream !== undefined && parsed.stream !== stream) throw wrong(`it is of ${parsed.stream}, not of ${stream}`);
    const key = await this.#keyOf(parsed, signal);
    if (!isSignedBy(key.verifying, parsed.base, parsed.signature)) throw wrong('its signature does not verify');
    await this.#store.add(parsed, { ...receipt, key: toJwk(key.publicKey) });
    this.#note(parsed);
  }

  #note({ stream, eventId, leaf }: ParsedReceipt): void {
    if (typeof stream === 'number') this.#service.heads.note(stream, { eventId, leaf: toHex(leaf) });
  }

  async #keyOf(terms: ParsedReceipt, signal?: AbortSignal): Promise<DirectoryKey> {
    const { keyid, stream } = terms;
    if (!this.#keys.has(keyid)) this.#keys = await readDirectory(this.#service, signal);
    const pinned = typeof stream === 'number' ? await this.#readPinned(stream, signal) : undefined;
    const problem = keyProblem(terms, pinned, this.#keys);
    if (problem !== undefined) throw wrong(problem);
    return this.#keys.get(keyid) as DirectoryKey;
  }

  async #readPinned(chamberId: number, signal?: AbortSignal): Promise<string | undefined> {
    if (!this.#pinned.has(chamberId)) {
      const call = { method: 'GET', path: `/chambers/${chamberId}/events?after=0&limit=1`, as: 'page' } as const;
      const { lines } = await exchange<Page>(this.#service, call, signal);
      const { event } = follow(START, chamberId, lines[0] ?? '', this.#service.limits);
      const pinned = event.type === 'chamber.created' ? event.payload.serviceKeys?.receipts : undefined;
      if (this.#pinned.size >= CHAMBERS_MAX) this.#pinned.clear();
      this.#pinned.set(chamberId, pinned);
    }
    return this.#pinned.get(chamberId);
  }

  /** Asks once; a service that can't be asked now is asked again. */
  #readService(signal?: AbortSignal): Promise<Asked> {
    this.#asked ??= exchange<ServiceInfo | null>(this.#service, { method: 'GET', path: '/' }, signal).then(
      (info) => {
        const { features, log } = info ?? {};
        const isKnown = typeof log?.logId === 'string' && LOG_ID.test(log.logId);
        return {
          logId: isKnown ? `${log.logId}` : '',
          takesSeen: isKnown && Array.isArray(features) && features.includes('seen'),
        };
      },
      (error: unknown) => {
        this.#asked = undefined;
        // If it does not respond, the move that follows says so, and is sent again.
        if (error instanceof ClientError) return { logId: '', takesSeen: false };
        throw error;
      },
    );
    return this.#asked;
  }
}

/** The response of GET /, as far as it is read here, not checked. */
interface ServiceInfo {
  readonly features?: unknown;
  readonly log?: { readonly logId?: unknown };
}

interface Asked {
  readonly logId: string;
  readonly takesSeen: boolean;
}

function parse(receipt: Receipt): ParsedReceipt {
  try {
    return parseReceipt(receipt);
  } catch (error) {
    throw wrong((error as Error).message);
  }
}

async function readDirectory(service: Service, signal?: AbortSignal): Promise<KeyDirectory> {
  return parseDirectory(await exchange<unknown>(service, { method: 'GET', path: DIRECTORY_PATH }, signal));
}

function wrong(problem: string): ClientError {
  return new ClientError('CLIENT_ERR_RECEIPT', `the service signed a receipt that does not hold: ${problem}`);
}
