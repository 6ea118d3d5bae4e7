// The receipts of an agent's own commands: each is verified under the key that its chamber pins, and kept. What the agent has
// verified of a chamber is what it says in its next move that it has seen.
import { toJwk } from '../crypto/jwk.ts';
import {
  DIRECTORY_PATH,
  type DirectoryKey,
  type KeyDirectory,
  keyProblem,
  NOT_IN_DIRECTORY,
  parseDirectory,
} from '../crypto/key-directory.ts';
import { type ParsedReceipt, parseReceipt, type Receipt } from '../crypto/receipt.ts';
import { isSignedBy } from '../crypto/verify.ts';
import { LOG_ID, toHex } from '../vocabulary/values.ts';
import type { Page, Service } from './call.ts';
import { ClientError } from './error.ts';
import { follow, START } from './events.ts';
import { exchange } from './exchange.ts';
import type { Head } from './heads.ts';
import type { ReceiptPlace, ReceiptStore } from './stores.ts';
import { Warnings } from './warnings.ts';

const CHAMBERS_MAX = 10_000;

export class ReceiptKeeper {
  readonly #service: Service;
  readonly #store: ReceiptStore;
  #keys: KeyDirectory = new Map();
  /** The pinned key by chamber; undefined if its first line records none, as in earlier releases. */
  readonly #pinned = new Map<number, string | undefined>();
  readonly #warnings: Warnings;
  #asked: Promise<Asked> | undefined;

  constructor(service: Service, store: ReceiptStore) {
    this.#service = service;
    this.#store = store;
    this.#warnings = new Warnings(service.onWarning);
  }

  /**
   * What a move in the chamber says of it: the last event that was read or receipted; undefined if the service takes none. It is a hint: that it
   * can't be read fails no move.
   */
  async seen(chamberId: number, signal?: AbortSignal): Promise<Head | undefined> {
    const { heads } = this.#service;
    const { logId, features } = await this.#readService(signal);
    if (!features.includes('seen') || logId === '') return undefined;
    if (heads.get(chamberId) === undefined) await this.#noteNewest({ logId, stream: chamberId });
    return heads.get(chamberId);
  }

  async #noteNewest(place: ReceiptPlace): Promise<void> {
    try {
      const kept = await this.#store.newest(place);
      if (kept !== undefined) this.#note(parseReceipt(kept));
    } catch (error) {
      this.#warnings.begin(
        'seen',
        `what this agent has seen of chamber ${place.stream} can’t be read: ${textOf(error)}`,
      );
    }
  }

  /** Reads what the receipt will be verified by: once the command is accepted, nothing that fails may make it look rejected. */
  async prepare(stream: number | string | undefined, signal?: AbortSignal): Promise<void> {
    const { features } = await this.#readService(signal);
    if (!features.includes('receipts')) return;
    try {
      if (this.#keys.size === 0) this.#keys = await readDirectory(this.#service, signal);
      if (typeof stream === 'number') await this.#readPinned(stream, signal);
    } catch (error) {
      if (!isOutage(error)) throw error;
    }
  }

  /**
   * Verifies and keeps the receipt of a command; throws CLIENT_ERR_RECEIPT for one that does not hold. What can't be verified or kept now is a
   * warning: the command was accepted.
   */
  async take(receipt: Receipt, stream: number | string | undefined, signal?: AbortSignal): Promise<void> {
    const parsed = parse(receipt);
    if (stream !== undefined && parsed.stream !== stream) throw wrong(`it is of ${parsed.stream}, not of ${stream}`);
    const key = await this.#keyOf(parsed, signal).catch((error: unknown) => {
      if (!isOutage(error)) throw error;
      this.#warnings.begin('verify', `${nameOf(parsed)}: its receipt is not verified and not kept: ${textOf(error)}`);
    });
    if (key === undefined) return;
    this.#warnings.end('verify');
    if (!isSignedBy(key.verifying, parsed.base, parsed.signature)) throw wrong('its signature does not verify');
    this.#note(parsed);
    try {
      await this.#store.add(parsed, { ...receipt, key: toJwk(key.publicKey) });
      this.#warnings.end('keep');
    } catch (error) {
      this.#warnings.begin('keep', `${nameOf(parsed)}, but receipts can’t be kept: ${textOf(error)}`);
    }
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
    const key = this.#keys.get(keyid);
    // The key is pinned by its thumbprint alone.
    if (key === undefined) throw wrong(NOT_IN_DIRECTORY);
    return key;
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
          features: Array.isArray(features) ? features : [],
        };
      },
      (error: unknown) => {
        this.#asked = undefined;
        // A service that has never responded is not waited for once more by the move that follows.
        if (!(error instanceof ClientError) || !this.#service.contact.isMade) throw error;
        // If it does not respond now, the move says so, and is sent again.
        return { logId: '', features: [] };
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
  /** Not checked. */
  readonly features: readonly unknown[];
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
  const detail = `the service signed a receipt that does not hold: ${problem}; the request may have been accepted`;
  return new ClientError('CLIENT_ERR_RECEIPT', detail);
}

/** Whether a read failed, rather than what was read. */
function isOutage(error: unknown): boolean {
  if (!(error instanceof ClientError)) return false;
  return error.code !== 'CLIENT_ERR_CHAIN' && error.code !== 'CLIENT_ERR_RECEIPT';
}

function nameOf({ stream, eventId }: ParsedReceipt): string {
  return `accepted as event ${eventId} of ${typeof stream === 'number' ? `chamber ${stream}` : stream}`;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
