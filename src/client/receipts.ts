// Verifies the receipts of an agent's commands with the keys that their chambers pin, and stores them. Each of the agent's moves includes
// the last event of the chamber that the agent has verified.
import { toJwk } from '../crypto/jwk.ts';
import { type DirectoryKey, type KeyDirectory, keyProblem, NOT_IN_DIRECTORY } from '../crypto/key-directory.ts';
import { type ParsedReceipt, parseReceipt, type Receipt } from '../crypto/receipt.ts';
import { isSignedBy } from '../crypto/verify.ts';
import { messageOf } from '../vocabulary/errors.ts';
import { LOG_ID, toHex } from '../vocabulary/values.ts';
import type { Page, Service } from './call.ts';
import { readDirectory } from './directory.ts';
import { ClientError } from './error.ts';
import { followServed, START } from './events.ts';
import { exchange } from './exchange.ts';
import type { Head } from './heads.ts';
import type { ReceiptPlace, ReceiptStore } from './stores.ts';
import { Warnings } from './warnings.ts';

const CHAMBERS_MAX = 10_000;

export class ReceiptKeeper {
  readonly #service: Service;
  readonly #store: ReceiptStore;
  #keys: KeyDirectory = new Map();
  /** The pinned key by chamber; undefined if the chamber's first line pins none, as in earlier releases. */
  readonly #pinned = new Map<number, string | undefined>();
  readonly #warnings: Warnings;
  #support: ServiceSupport | undefined;

  constructor(service: Service, store: ReceiptStore) {
    this.#service = service;
    this.#store = store;
    this.#warnings = new Warnings(service.onWarning);
  }

  /**
   * Returns the last event of the chamber that was read or receipted, for the next move; undefined if the service does not accept `seen`. A
   * failure to read a stored receipt does not make the move fail.
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
        `cannot read the last event of chamber ${place.stream} that this agent has seen: ${messageOf(error)}`,
      );
    }
  }

  /**
   * Reads the key before the command is sent, because a failure after the service has accepted the command must not make it look rejected.
   */
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
   * Verifies and stores a command's receipt; throws CLIENT_ERR_RECEIPT if the receipt is invalid. Only warns if the receipt can't be
   * verified or stored now, because the service has accepted the command.
   */
  async take(receipt: Receipt, stream: number | string | undefined, signal?: AbortSignal): Promise<void> {
    const parsed = parse(receipt);
    if (stream !== undefined && parsed.stream !== stream)
      throw invalidReceipt(`it is for ${parsed.stream}, not for ${stream}`);
    const key = await this.#keyOf(parsed, signal).catch((error: unknown) => {
      if (!isOutage(error)) throw error;
      this.#warnings.begin(
        'verify',
        `${nameOf(parsed)}, but its receipt could not be verified and was not stored: ${messageOf(error)}`,
      );
    });
    if (key === undefined) return;
    this.#warnings.end('verify');
    if (!isSignedBy(key.verifying, parsed.base, parsed.signature))
      throw invalidReceipt('its signature does not verify');
    this.#note(parsed);
    try {
      await this.#store.add(parsed, { ...receipt, key: toJwk(key.publicKey) });
      this.#warnings.end('keep');
    } catch (error) {
      this.#warnings.begin('keep', `${nameOf(parsed)}, but receipts cannot be stored: ${messageOf(error)}`);
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
    if (problem !== undefined) throw invalidReceipt(problem);
    const key = this.#keys.get(keyid);
    // Chambers pin only the thumbprint of the key.
    if (key === undefined) throw invalidReceipt(NOT_IN_DIRECTORY);
    return key;
  }

  async #readPinned(chamberId: number, signal?: AbortSignal): Promise<string | undefined> {
    if (!this.#pinned.has(chamberId)) {
      const call = { method: 'GET', path: `/chambers/${chamberId}/events?after=0&limit=1`, as: 'page' } as const;
      const { lines } = await exchange<Page>(this.#service, call, signal);
      const { event } = await followServed(
        this.#service,
        { cursor: START, stream: chamberId, line: lines[0] ?? '' },
        signal,
      );
      const pinned = event.type === 'chamber.created' ? event.payload.serviceKeys?.receipts : undefined;
      if (this.#pinned.size >= CHAMBERS_MAX) this.#pinned.clear();
      this.#pinned.set(chamberId, pinned);
    }
    return this.#pinned.get(chamberId);
  }

  /** Reads GET / until a read succeeds. Concurrent calls do not share a read, because each has its own signal. */
  async #readService(signal?: AbortSignal): Promise<ServiceSupport> {
    if (this.#support !== undefined) return this.#support;
    try {
      const info = await exchange<ServiceInfo | null>(this.#service, { method: 'GET', path: '/' }, signal);
      const { features, log } = info ?? {};
      const logId = typeof log?.logId === 'string' && LOG_ID.test(log.logId) ? log.logId : '';
      this.#support = { logId, features: Array.isArray(features) ? features : [] };
      return this.#support;
    } catch (error) {
      // If the service has never responded, the move that follows need not wait for it again.
      if (!(error instanceof ClientError) || !this.#service.contact.isMade) throw error;
      // The move itself reports and retries an outage.
      return { logId: '', features: [] };
    }
  }
}

interface ServiceInfo {
  readonly features?: unknown;
  readonly log?: { readonly logId?: unknown };
}

interface ServiceSupport {
  readonly logId: string;
  readonly features: readonly unknown[];
}

function parse(receipt: Receipt): ParsedReceipt {
  try {
    return parseReceipt(receipt);
  } catch (error) {
    throw invalidReceipt((error as Error).message);
  }
}

function invalidReceipt(problem: string): ClientError {
  const detail = `the service sent an invalid receipt: ${problem}; the request may have been accepted`;
  return new ClientError('CLIENT_ERR_RECEIPT', detail);
}

/** Returns whether the read failed, as opposed to the verification of the response. */
function isOutage(error: unknown): boolean {
  if (!(error instanceof ClientError)) return false;
  return error.code !== 'CLIENT_ERR_CHAIN' && error.code !== 'CLIENT_ERR_RECEIPT';
}

function nameOf({ stream, eventId }: ParsedReceipt): string {
  return `accepted as event ${eventId} of ${typeof stream === 'number' ? `chamber ${stream}` : stream}`;
}
