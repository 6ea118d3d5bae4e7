// Verifies requests to an agent's callback URL, to which anybody can send.
import { keyProblem } from '../crypto/key-directory.ts';
import { parseCallback } from '../crypto/received-callback.ts';
import { isSignedBy } from '../crypto/verify.ts';
import { Chunks } from '../reading/chunks.ts';
import { parseBoundedJson } from '../reading/limits.ts';
import type { Shape } from '../reading/shape.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { CallOptions, Service } from './call.ts';
import type { Callback, ChallengeCallback, DueCallback } from './callback-types.ts';
import { readDirectory } from './directory.ts';
import { ClientError } from './error.ts';
import { CHALLENGE_CALLBACK, DUE_CALLBACK, TYPED } from './shapes.ts';
import { steadyMillis } from './time.ts';

export interface CallbackOptions extends CallOptions {
  /**
   * The URL that the agent has set. A challenge does not name the agent, so only a URL with a secret part, such as a random path, prevents
   * other agents from setting it.
   */
  readonly url: string;
  /** The receiver's agent: callbacks for other agents are rejected. Without it, the caller must compare the callback's `did`. */
  readonly did?: string;
}

export type CallbackRequest = Pick<Request, 'method' | 'headers' | 'body'> & Partial<Pick<Request, 'bodyUsed'>>;

const BODY_BYTES_MAX = 16_384;
const AGE_SECONDS_MAX = 300;
/** Keys expire and are rotated, so the directory is read again after this time. */
const KEYS_AGE_MAX_MILLIS = 3_600_000;
/** The minimum time between reads of the directory, so that requests with unknown keys do not each cause one. */
const KEYS_AGE_MIN_MILLIS = 10_000;

type Keys = Awaited<ReturnType<typeof readDirectory>>;

export class CallbackVerifier {
  readonly #service: Service;
  #keys: Promise<Keys> | undefined;
  #readAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(service: Service) {
    this.#service = service;
  }

  /**
   * Throws CLIENT_ERR_CALLBACK unless the service signed the request for this URL within the last five minutes, and CLIENT_ERR_INPUT unless
   * the request is a Request with an unread body.
   */
  async verify(request: CallbackRequest, { url, did, signal }: CallbackOptions): Promise<Callback> {
    requireUnread(request);
    if (request.method !== 'POST') throw invalid(`it was sent with ${request.method}`);
    const body = await readBody(request);
    const targetUri = toTargetUri(url);
    const parsed = parse(() => parseCallback({ method: request.method, targetUri, headers: request.headers, body }));
    const age = Math.floor(this.#service.clock.now() / 1_000) - parsed.created;
    if (Math.abs(age) > AGE_SECONDS_MAX)
      throw invalid(`by this receiver's clock, it was signed ${age < 0 ? `${-age} s from now` : `${age} s ago`}`);
    const keys = await this.#keysWith(parsed.keyid, signal);
    const problem = keyProblem(parsed, undefined, keys);
    const key = keys.get(parsed.keyid);
    if (problem !== undefined || key === undefined) throw invalid(problem ?? 'its key is not known');
    if (!isSignedBy(key.verifying, parsed.base, parsed.signature)) throw invalid('its signature does not verify');
    const callback = toCallback(parsed.webhookId, new TextDecoder().decode(body), this.#service.limits);
    if (callback.type === 'todo.due' && did !== undefined && callback.did !== did)
      throw invalid('it is for another agent');
    return callback;
  }

  async #keysWith(keyid: string, signal: AbortSignal | undefined): Promise<Keys> {
    const age = () => steadyMillis(this.#service.clock.local) - this.#readAt;
    const known = await this.#keys?.catch(() => undefined);
    const isFresh = known !== undefined && age() < (known.has(keyid) ? KEYS_AGE_MAX_MILLIS : KEYS_AGE_MIN_MILLIS);
    if (isFresh) return known;
    if (age() >= KEYS_AGE_MIN_MILLIS || known === undefined) {
      this.#readAt = steadyMillis(this.#service.clock.local);
      this.#keys = readDirectory(this.#service, signal);
    }
    return (await this.#keys) as Keys;
  }
}

/** Throws CLIENT_ERR_INPUT for the request objects of frameworks, and for a body that a framework has already read. */
function requireUnread(request: Partial<CallbackRequest> | null | undefined): void {
  const { headers, body, bodyUsed } = request ?? {};
  const isFetchRequest = typeof headers?.get === 'function' && (body === null || typeof body?.getReader === 'function');
  if (!isFetchRequest) throw new ClientError('CLIENT_ERR_INPUT', 'the request must be a Request of the Fetch API');
  if (bodyUsed || body?.locked)
    throw new ClientError(
      'CLIENT_ERR_INPUT',
      'the body of the request has already been read: pass request.clone() instead',
    );
}

async function readBody({ body }: CallbackRequest): Promise<Uint8Array> {
  const chunks = new Chunks();
  const reader = body?.getReader();
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    chunks.add(read.value);
    if (chunks.length <= BODY_BYTES_MAX) continue;
    await reader?.cancel();
    throw invalid(`its body is longer than ${BODY_BYTES_MAX} bytes`);
  }
  return chunks.take();
}

/** Returns the URL as the service signs it: normalised, without a fragment. */
function toTargetUri(url: string): string {
  if (!URL.canParse(url)) throw new ClientError('CLIENT_ERR_INPUT', `${url} is not a URL`);
  const parsed = new URL(url);
  parsed.hash = '';
  return parsed.href;
}

function toCallback(id: string, json: string, limits: Service['limits']): Callback {
  const value = parse(() => parseBoundedJson(json, limits)) as { readonly type?: unknown } | null | undefined;
  const requireShape = (shape: Shape) => {
    const problem = shape(value, '');
    if (problem !== undefined) throw invalid(problem);
  };
  requireShape(TYPED);
  switch (value?.type) {
    case 'todo.due': {
      requireShape(DUE_CALLBACK);
      return { ...(value as DueCallback), id };
    }
    case 'callback.verify': {
      requireShape(CHALLENGE_CALLBACK);
      const { challenge } = value as ChallengeCallback;
      return { type: 'callback.verify', id, challenge, answer: { challenge } };
    }
    default:
      throw invalid(`its type ${JSON.stringify(value?.type)} is unknown to this version`);
  }
}

function parse<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw invalid((error as Error).message);
  }
}

function invalid(problem: string): ClientError {
  return new ClientError('CLIENT_ERR_CALLBACK', `the request is not a callback from the service: ${problem}`);
}
