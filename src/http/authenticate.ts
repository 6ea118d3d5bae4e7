// Who sent a request: the checks of its signature in the order form, digest, verification, registration (RFC 9421, Ed25519).

import { LRUCache } from 'lru-cache';
import { contentDigestOf, hasDigest } from '../crypto/content-digest.ts';
import { parseDid, weaknessOf } from '../crypto/did-key.ts';
import { type ParsedSignature, parseSignature, signatureBase } from '../crypto/http-signature.ts';
import { signatureKey } from '../crypto/signature-key.ts';
import { SignatureRefusal } from '../crypto/signature-refusal.ts';
import type { Caller } from '../forum/commands.ts';
import { type ExpectedSignature, ForumError } from '../vocabulary/errors.ts';
import { toTimestamp } from '../vocabulary/values.ts';
import type { RequestBody } from './body.ts';
import type { ForumContext, HttpOptions } from './context.ts';
import { header } from './header.ts';
import { RateLimit } from './rate-limit.ts';
import { targetUris } from './target.ts';

const KEYS_CACHED_MAX = 10_000;
const DEV_HEADER = 'x-dev-did';

export class Authenticator {
  readonly #options: HttpOptions;
  /** Keys that passed the check, by DID. */
  readonly #keys = new LRUCache<string, Uint8Array>({ max: KEYS_CACHED_MAX });

  readonly #rate: RateLimit;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#rate = new RateLimit(options.ratePerDid);
  }

  /** The registered agent behind the request; throws FORUM_ERR_SIGNATURE naming the step that failed. */
  async authenticate(c: ForumContext, body: RequestBody): Promise<Caller> {
    const caller = this.#isSigned(c) ? await this.verify(c, body) : this.#unsigned(c, body);
    if ((await this.#options.forum.account(caller.did)) !== undefined) return this.#paced(caller);
    throw this.#refused(c, body, new SignatureRefusal('registration', `${caller.did} is not registered`));
  }

  /** For POST /register: the signer, or undefined for the usual unsigned registration. */
  async authenticateRegistration(c: ForumContext, body: RequestBody): Promise<Caller | undefined> {
    if (!this.#isSigned(c)) return undefined;
    const caller = await this.verify(c, body);
    // The body holds personal data, which is never in the log.
    return this.#paced({ ...caller, request: caller.request && { ...caller.request, body: null } });
  }

  /** Only now: nobody can use up another's rate without a signature. */
  #paced(caller: Caller): Caller {
    const refusal = this.#rate.refuse(caller.did, 'this agent');
    if (refusal !== undefined) throw refusal;
    return caller;
  }

  #isSigned(c: ForumContext): boolean {
    return header(c, 'signature') !== undefined || header(c, 'signature-input') !== undefined;
  }

  #unsigned(c: ForumContext, body: RequestBody): Caller {
    const did = this.#options.allowUnsigned ? header(c, DEV_HEADER) : undefined;
    if (did !== undefined) return { did, request: null, signature: null, times: null };
    throw this.#refused(c, body, new SignatureRefusal('form', 'the headers Signature-Input and Signature are missing'));
  }

  /** The signer of the request, registered or not. */
  async verify(c: ForumContext, body: RequestBody): Promise<Caller> {
    const headers = signatureHeaders(c);
    const { contentDigest, signatureInput, signature } = headers;
    try {
      const parsed = parseSignature(headers);
      requireDigest(contentDigest, body.bytes);
      const publicKey = this.#publicKey(parsed.keyid);
      const targetUri = await this.#matchingTarget(c, parsed, contentDigest, publicKey);
      requireDevDid(header(c, DEV_HEADER), parsed.keyid, this.#options.allowUnsigned);
      const request = { method: c.req.method, targetUri, body: body.text, contentDigest, signatureInput, signature };
      return { did: parsed.keyid, request, signature: signatureKey(parsed), times: timesOf(parsed) };
    } catch (error) {
      throw error instanceof SignatureRefusal ? this.#refused(c, body, error) : error;
    }
  }

  #publicKey(did: string): Uint8Array {
    const cached = this.#keys.get(did);
    if (cached !== undefined) return cached;
    const publicKey = parseDid(did);
    if (publicKey === undefined) throw new SignatureRefusal('key', 'keyid must be a did:key of an Ed25519 key');
    const weakness = weaknessOf(publicKey);
    if (weakness !== undefined) throw new SignatureRefusal('key', `keyid: ${weakness}`);
    this.#keys.set(did, publicKey);
    return publicKey;
  }

  /** The one of the service's addresses that the signature covers. */
  async #matchingTarget(
    c: ForumContext,
    parsed: ParsedSignature,
    contentDigest: string,
    publicKey: Uint8Array,
  ): Promise<string> {
    for (const targetUri of targetUris(c, this.#options.publicUrls)) {
      const base = Buffer.from(signatureBase(parsed, { method: c.req.method, targetUri, contentDigest }));
      if (await this.#options.verify(publicKey, base, parsed.signature)) return targetUri;
    }
    throw new SignatureRefusal('verification', 'the signature does not verify over the expected signature base');
  }

  #refused(c: ForumContext, body: RequestBody, { step, message }: SignatureRefusal): ForumError {
    const time = toTimestamp(this.#options.forum.wallClock());
    return new ForumError('FORUM_ERR_SIGNATURE', `${step}: ${message} (service time ${time})`, {
      expected: expectedSignature(c, body, this.#options.publicUrls),
    });
  }
}

interface Headers {
  readonly contentDigest: string;
  readonly signatureInput: string;
  readonly signature: string;
}

function signatureHeaders(c: ForumContext): Headers {
  return {
    contentDigest: header(c, 'content-digest') ?? '',
    signatureInput: header(c, 'signature-input') ?? '',
    signature: header(c, 'signature') ?? '',
  };
}

function requireDigest(header: string, body: Uint8Array): void {
  if (header === '') throw new SignatureRefusal('digest', 'the header Content-Digest is missing');
  const verdict = hasDigest(header, body);
  if (!verdict.ok) throw new SignatureRefusal('digest', verdict.problem);
}

function requireDevDid(devDid: string | undefined, keyid: string, allowUnsigned: boolean): void {
  if (!allowUnsigned || devDid === undefined || devDid === keyid) return;
  throw new SignatureRefusal('key', `the signature is by ${keyid}, X-Dev-Did names another`);
}

function timesOf({ created, expires }: ParsedSignature) {
  return expires === undefined ? { created } : { created, expires };
}

/** What the service would have verified, made from the caller's own input alone, so that a signer can be mended with it. */
function expectedSignature(c: ForumContext, body: RequestBody, publicUrls: readonly string[]): ExpectedSignature {
  const { contentDigest: received, signatureInput, signature } = signatureHeaders(c);
  const contentDigest = hasDigest(received, body.bytes).ok ? received : contentDigestOf(body.bytes);
  const request = { method: c.req.method, targetUri: targetUris(c, publicUrls)[0] ?? '', contentDigest };
  return { signatureBase: baseOf(request, signatureInput, signature), contentDigest };
}

const PLACEHOLDER = {
  components: ['@method', '@target-uri', 'content-digest'],
  params:
    '("@method" "@target-uri" "content-digest");created=<unix seconds>;keyid="<your did:key>";alg="ed25519";nonce="<random>"',
} as const;

function baseOf(request: Parameters<typeof signatureBase>[1], signatureInput: string, signature: string): string {
  try {
    return signatureBase(parseSignature({ signatureInput, signature }), request);
  } catch {
    return signatureBase({ ...PLACEHOLDER, created: 0, keyid: '' }, request);
  }
}
