// Registers callbacks. A URL is stored only after its receiver has consented by answering a challenge; an endpoint that only echoes requests
// fails the challenge.
import { randomBytes } from 'node:crypto';
import type { CallbackStore, StoredCallback } from '../log/callbacks.ts';
import { conflict, ForumError, rateError } from '../vocabulary/errors.ts';
import { parseJson } from '../vocabulary/json.ts';
import type { Millis } from '../vocabulary/values.ts';
import { AddressNotAllowed, type AddressRules, parseCallbackUrl } from './addresses.ts';
import type { Poster, PostResult } from './post.ts';
import { type CallbackSigner, signedPost } from './signing.ts';

const CHALLENGE_BYTES = 32;
const CONCURRENT_CHALLENGES_MAX = 8;
const BUSY_MS = 1_000;

/** Takes a token and returns 0, or returns the milliseconds until the next token. */
interface Rate {
  take(caller: string): Millis;
  /** Returns an unused token. */
  refund(caller: string): void;
}

export interface RegistryOptions {
  readonly isOn: boolean;
  readonly store: CallbackStore;
  readonly poster: Poster;
  readonly signer: CallbackSigner;
  readonly rules: AddressRules;
  readonly challengesPerDid: Rate;
  readonly challengesPerNetwork: Rate;
  readonly maxAgeSeconds: number;
  /** Called when an agent has set its callback. */
  readonly onSet: () => void;
}

export interface Registering {
  readonly did: string;
  readonly url: string | null;
  /** The network whose rate limit applies. */
  readonly network: string;
  /** The request's signature; null for an unsigned request. */
  readonly signature: { readonly key: string; readonly created: number } | null;
}

export class CallbackRegistry {
  readonly #options: RegistryOptions;
  readonly #pending = new Map<string, Promise<void>>();
  #challenges = 0;

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  async get(did: string): Promise<StoredCallback | undefined> {
    return this.#options.store.get(did);
  }

  /**
   * Sets the agent's callback, or removes it if the URL is null, which works even while callbacks are off. A signature can be used only
   * once. Throws FORUM_ERR_CALLBACK, FORUM_ERR_FORBIDDEN, FORUM_ERR_RATE or FORUM_ERR_CONFLICT.
   */
  set(registering: Registering): Promise<void> {
    const { key } = registering.signature ?? {};
    const earlier = key === undefined ? undefined : this.#pending.get(key);
    if (key === undefined || earlier !== undefined) return earlier ?? this.#set(registering);
    const work = this.#set(registering).finally(() => this.#pending.delete(key));
    this.#pending.set(key, work);
    return work;
  }

  async #set(registering: Registering): Promise<void> {
    const { isOn, store } = this.#options;
    const { did, signature } = registering;
    if (!isOn && registering.url !== null)
      throw new ForumError('FORUM_ERR_FORBIDDEN', 'callbacks are off: the operator can turn them on with CALLBACKS');
    const url = registering.url === null ? null : this.#parse(registering.url);
    if (await this.#isRepeated(registering, url)) return;
    try {
      if (url === null) await store.remove(did);
      else await this.#replace(registering, url);
    } catch (error) {
      const isFinal = error instanceof ForumError && error.code === 'FORUM_ERR_CALLBACK';
      // After any other error, the client may retry with the same signature.
      if (!isFinal && signature !== null) await store.forget({ ...signature, did }).catch(() => {});
      throw error;
    }
  }

  async #replace(registering: Registering, url: URL): Promise<void> {
    const { store, signer, onSet } = this.#options;
    this.#charge(registering);
    await this.#verify(url).catch((error: unknown) => {
      // No challenge was sent.
      if (error instanceof ForumError && error.code === 'FORUM_ERR_RATE') this.#refund(registering);
      throw error;
    });
    await store.put({ did: registering.did, url: url.href, since: signer.now() });
    onSet();
  }

  #parse(text: string): URL {
    try {
      return parseCallbackUrl(text, this.#options.rules);
    } catch (error) {
      throw error instanceof AddressNotAllowed ? callbackError(`url: ${error.message}`) : error;
    }
  }

  /** A repeated request changes nothing; it succeeds if the callback already has the requested value. */
  async #isRepeated({ did, signature }: Registering, url: URL | null): Promise<boolean> {
    const { store, signer, maxAgeSeconds } = this.#options;
    if (signature === null) return false;
    const oldest = Math.floor(signer.now() / 1000) - maxAgeSeconds;
    if (await store.remember({ ...signature, did }, oldest)) return false;
    const stored = (await store.get(did))?.url ?? null;
    if (stored === (url?.href ?? null)) return true;
    throw conflict('this request was already received: sign it again');
  }

  #charge({ did, network }: Registering): void {
    const { challengesPerDid, challengesPerNetwork } = this.#options;
    const waitOfDid = challengesPerDid.take(did);
    const wait = waitOfDid || challengesPerNetwork.take(network);
    if (waitOfDid === 0 && wait > 0) challengesPerDid.refund(did);
    if (wait > 0) throw rateError(wait, 'callback verifications');
  }

  #refund({ did, network }: Registering): void {
    this.#options.challengesPerDid.refund(did);
    this.#options.challengesPerNetwork.refund(network);
  }

  async #verify(url: URL): Promise<void> {
    if (this.#challenges >= CONCURRENT_CHALLENGES_MAX) throw rateError(BUSY_MS, 'concurrent callback verifications');
    this.#challenges++;
    try {
      const challenge = randomBytes(CHALLENGE_BYTES).toString('base64url');
      const value = { type: 'callback.verify', challenge };
      const post = await signedPost(url, challenge, value, this.#options.signer);
      requireConsent(await this.#options.poster.post({ ...post, kind: 'challenge' }), challenge);
    } finally {
      this.#challenges--;
    }
  }
}

function requireConsent(result: PostResult, challenge: string): void {
  switch (result.kind) {
    case 'busy':
    case 'unwanted':
      throw rateError(BUSY_MS, 'requests to the address of the URL');
    case 'failed':
      throw callbackError(`the challenge was not answered: ${result.reason}`);
    case 'response':
      if (result.status !== 200)
        throw callbackError(`the challenge was answered with status ${result.status}, not 200`);
      if (!isConsent(result.body, challenge))
        throw callbackError(
          'the challenge was answered with the wrong body: it must be {"challenge":"…"} with the text sent and no other member',
        );
  }
}

function isConsent(body: Buffer, challenge: string): boolean {
  try {
    const answer = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body), 2);
    const isObject = typeof answer === 'object' && answer !== null && !Array.isArray(answer);
    return isObject && Object.keys(answer).join() === 'challenge' && Object.values(answer)[0] === challenge;
  } catch {
    return false;
  }
}

function callbackError(detail: string): ForumError {
  return new ForumError('FORUM_ERR_CALLBACK', detail);
}
