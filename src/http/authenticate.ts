// Authenticates the signer of a request (RFC 9421, Ed25519). Checks form, digest, registration and signature, in this order.
import { hash } from 'node:crypto';
import { digestProblem } from '../crypto/content-digest.ts';
import { parseDid, weaknessOf } from '../crypto/did-key.ts';
import {
  hiddenSignatureKey,
  isForeignOnly,
  LABEL,
  labelsOf,
  type ParsedSignature,
  parseSignature,
  SignatureError,
  signatureBase,
  signatureKey,
} from '../crypto/http-signature.ts';
import type { Caller } from '../forum/commands.ts';
import { requireFresh } from '../moves/rules.ts';
import { type ExpectedSignature, ForumError, rateError } from '../vocabulary/errors.ts';
import type { RequestEvidence } from '../vocabulary/events.ts';
import { toTimestamp } from '../vocabulary/values.ts';
import type { ForumContext, HttpOptions } from './context.ts';
import { header, type RequestBody, targetUris } from './request.ts';

const DEV_HEADER = 'x-dev-did';

export interface Authenticated extends Caller {
  /** The request that the signature covers, even if the event must not keep it; null for an unsigned request. */
  readonly received: RequestEvidence | null;
}

export class Authenticator {
  readonly #options: HttpOptions;

  constructor(options: HttpOptions) {
    this.#options = options;
  }

  /**
   * Returns the registered agent that sent a read. Throws FORUM_ERR_SIGNATURE, which names the failed step, or FORUM_ERR_RATE. Signed
   * reads are not logged, so the same request is accepted again while its signature is fresh.
   */
  async authenticate(c: ForumContext, body: RequestBody): Promise<Authenticated> {
    const caller = await this.authenticateMove(c, body);
    const wait = this.#options.agentRate.take(caller.did);
    if (wait > 0) throw rateError(wait, 'requests by this agent');
    const { forum } = this.#options;
    if (caller.times !== null) requireFresh(caller.times, forum.now(), forum.ages);
    return caller;
  }

  /** Returns the registered agent that sent a move. The forum charges the agent's rate limit once it knows that the move is not a retry. */
  async authenticateMove(c: ForumContext, body: RequestBody, { isRegistration = false } = {}): Promise<Authenticated> {
    return isSigned(c) ? this.#verify(c, body, isRegistration) : this.#unsigned(c, body);
  }

  /** Returns the signer of POST /register, registered or not; undefined for an unsigned registration. */
  async authenticateRegistration(c: ForumContext, body: RequestBody): Promise<Authenticated | undefined> {
    if (!isSigned(c)) return undefined;
    const caller = await this.authenticateMove(c, body, { isRegistration: true });
    // The digest or signature of a body with an e-mail address would let readers of the log test guesses of the address.
    const { json } = body;
    const hasEmail = typeof json === 'object' && json !== null && 'operatorEmail' in json;
    const signature = caller.signature && hiddenSignatureKey(caller.signature);
    return { ...caller, request: hasEmail ? null : caller.request, signature };
  }

  async #unsigned(c: ForumContext, body: RequestBody): Promise<Authenticated> {
    const did = this.#options.allowUnsigned ? header(c, DEV_HEADER) : undefined;
    if (did === undefined) throw this.#signatureError(c, body, unsignedError(c));
    const account = await this.#options.forum.signer(did);
    if (account === undefined) throw this.#signatureError(c, body, notRegistered(did));
    return { did, request: null, received: null, signature: null, times: null };
  }

  async #verify(c: ForumContext, body: RequestBody, isRegistration: boolean): Promise<Authenticated> {
    const contentDigest = header(c, 'content-digest') ?? '';
    const { method } = c.req;
    try {
      const signatureInput = requireHeader(c, 'Signature-Input');
      const signature = requireHeader(c, 'Signature');
      const parsed = parseSignature({ signatureInput, signature });
      const { keyid: did, created, expires } = parsed;
      if (contentDigest === '') throw new SignatureError('digest', 'the Content-Digest header is missing');
      const problem = digestProblem(contentDigest, digestOf(body));
      if (problem !== undefined) throw new SignatureError('digest', problem);
      const account = await this.#options.forum.signer(did);
      const publicKey =
        account === undefined
          ? unregisteredKey(did, isRegistration)
          : Buffer.from(account.state.pubkeyHex.slice('0x'.length), 'hex');
      const network = c.env.incoming === undefined ? '' : this.#options.networkOf(c.env.incoming);
      const queue = account === undefined ? { network } : { network, did };
      for (const targetUri of targetUris(c, this.#options.publicUrls)) {
        const base = Buffer.from(signatureBase(parsed, { method, targetUri, contentDigest }));
        const isValid = await this.#options.verify(publicKey, base, parsed.signature, queue);
        if (!isValid) continue;
        const devDid = (this.#options.allowUnsigned ? header(c, DEV_HEADER) : undefined) ?? did;
        if (devDid !== did)
          throw new SignatureError('key', `the signature is by ${did}, but X-Dev-Did names another agent`);
        const request = { method, targetUri, body: body.text, contentDigest, signatureInput, signature };
        return {
          did,
          request,
          received: request,
          signature: signatureKey(parsed),
          times: expires === undefined ? { created } : { created, expires },
          formProblem: formProblemOf(parsed, targetUri),
        };
      }
      throw new SignatureError('verification', 'the signature does not verify over the expected signature base');
    } catch (error) {
      throw error instanceof SignatureError ? this.#signatureError(c, body, error) : error;
    }
  }

  #signatureError(c: ForumContext, body: RequestBody, { step, message }: SignatureError): ForumError {
    const serviceTime = toTimestamp(this.#options.forum.now());
    return new ForumError('FORUM_ERR_SIGNATURE', `${step}: ${message} (service time ${serviceTime})`, {
      step,
      serviceTime,
      expected: expectedSignature(c, body, this.#options.publicUrls),
    });
  }
}

const NONCE = /^[A-Za-z0-9_-]{1,64}$/;

/** Checks rules that earlier releases lacked, so they do not apply to retries and logged lines. */
function formProblemOf({ nonce = 'none' }: ParsedSignature, targetUri: string): string | undefined {
  if (targetUri.includes('?')) return 'query: a signed move must have no query string';
  return NONCE.test(nonce) ? undefined : 'Signature-Input: nonce must be 1 to 64 characters of A–Z a–z 0–9 _ -';
}

/** Returns the key of a registration. Rejects other requests before the check for weak keys, which costs more than a verification. */
function unregisteredKey(did: string, isRegistration: boolean): Uint8Array {
  const publicKey = parseDid(did);
  if (publicKey === undefined) throw new SignatureError('key', keyidProblem(did));
  if (!isRegistration) throw notRegistered(did);
  const weakness = weaknessOf(publicKey);
  if (weakness !== undefined) throw new SignatureError('key', `keyid: ${weakness}`);
  return publicKey;
}

function keyidProblem(keyid: string): string {
  const [did = '', fragment] = keyid.split('#');
  // Many libraries write a did:key as the DID URL of its only key.
  const isDidUrl = fragment !== undefined && parseDid(did) !== undefined;
  return isDidUrl
    ? 'keyid must be the did:key alone: leave out # and what follows it'
    : 'keyid must be a did:key of an Ed25519 key';
}

function notRegistered(did: string): SignatureError {
  return new SignatureError('registration', `${did} is not registered`);
}

/** Returns the same as contentDigestOf, computed by Node because bodies can be long. */
function digestOf({ bytes }: RequestBody): string {
  return `sha-256=:${hash('sha256', bytes, 'base64')}:`;
}

function unsignedError(c: ForumContext): SignatureError {
  const labels = labelsOf(header(c, 'signature-input') ?? '');
  if (labels.length === 0) return new SignatureError('form', 'the Signature-Input and Signature headers are missing');
  return new SignatureError(
    'form',
    `Signature-Input and Signature have no signature labelled ${LABEL}; their labels are ${labels.join(', ')}`,
  );
}

function requireHeader(c: ForumContext, name: 'Signature-Input' | 'Signature'): string {
  const value = header(c, name.toLowerCase());
  if (value === undefined) throw new SignatureError('form', `the ${name} header is missing`);
  return value;
}

/** Whether the request has a signature other than those added by proxies. */
function isSigned(c: ForumContext): boolean {
  const [signatureInput, signature] = [header(c, 'signature-input'), header(c, 'signature')];
  if (signatureInput === undefined || signature === undefined) return (signatureInput ?? signature) !== undefined;
  return !isForeignOnly({ signatureInput, signature });
}

/** Returns the signature base that the service expected, for the caller to compare. It is built from the caller's own request alone. */
function expectedSignature(c: ForumContext, body: RequestBody, publicUrls: readonly string[]): ExpectedSignature {
  const received = header(c, 'content-digest') ?? '';
  const computed = digestOf(body);
  const contentDigest = digestProblem(received, computed) === undefined ? received : computed;
  const request = { method: c.req.method, targetUri: targetUris(c, publicUrls)[0] ?? '', contentDigest };
  return { signatureBase: baseOf(c, request), contentDigest };
}

const PLACEHOLDER = {
  components: ['@method', '@target-uri', 'content-digest'],
  params:
    '("@method" "@target-uri" "content-digest");created=<unix seconds>;keyid="<your did:key>";alg="ed25519";nonce="<random>"',
} as const;

function baseOf(c: ForumContext, request: Parameters<typeof signatureBase>[1]): string {
  const signatureInput = header(c, 'signature-input') ?? '';
  const signature = header(c, 'signature') ?? '';
  try {
    return signatureBase(parseSignature({ signatureInput, signature }), request);
  } catch {
    return signatureBase({ ...PLACEHOLDER, created: 0, keyid: '' }, request);
  }
}
