// Checks the signed request in a move's line by the same rules as the service (RFC 9421, RFC 9530).
import { contentDigestOf, digestProblem } from '../../crypto/content-digest.ts';
import { parseDid, weaknessOf } from '../../crypto/did-key.ts';
import {
  type ParsedSignature,
  parseSignature,
  parseTarget,
  SignatureError,
  signatureBase,
} from '../../crypto/http-signature.ts';
import { toVerifyingKey, type VerifyingKey } from '../../crypto/verify.ts';
import { createChamber } from '../../moves/create-chamber.ts';
import { moveOfEvent } from '../../moves/registry.ts';
import type { MoveEvent, RequestEvidence } from '../../vocabulary/events.ts';
import { hidesRequest } from '../../vocabulary/texts.ts';
import { instantOf, type Millis, SIGNATURE_AGES } from '../../vocabulary/values.ts';
import type { AuditContext } from '../context.ts';
import type { AuditPolicy } from '../policy.ts';
import type { Findings, Outcome } from '../report/findings.ts';
import { UsedValues } from './used-values.ts';

const utf8 = new TextEncoder();

export class EvidenceChecks {
  readonly #findings: Findings;
  readonly #context: AuditContext;
  readonly #signatures: UsedValues;
  unsignedMoves = 0;
  #hasOrigin = false;

  constructor(findings: Findings, context: AuditContext) {
    this.#findings = findings;
    this.#context = context;
    const { caps } = SIGNATURE_AGES;
    const { maxAgeSeconds = caps.maxAgeSeconds, maxSkewSeconds = caps.maxSkewSeconds } = context.policy;
    this.#signatures = new UsedValues((maxAgeSeconds + maxSkewSeconds) * 1000);
  }

  async check(event: MoveEvent, eventId: number, verification?: Verification): Promise<void> {
    const { request, type, withheld } = event;
    if (withheld !== undefined && request === null && hidesRequest(type)) {
      const why = `the request of event ${eventId} is withheld`;
      this.#findings.notEvaluated({ needs: 'originals', why }, 'digest', 'signature', 'target', 'once', 'age');
      return;
    }
    if (request === null || verification === undefined) {
      this.#checkUnsigned(event, eventId);
      return;
    }
    const problem = digestProblem(request.contentDigest, contentDigestOf(utf8.encode(request.body ?? '')));
    this.#findings.judge('digest', [eventId], problem && `event ${eventId}: ${problem}`);
    this.#checkTarget(event, request, eventId);
    try {
      const parsed = await concludeVerification(verification);
      const at = instantOf(event.ts);
      this.#findings.judge('signature', [eventId]);
      this.#checkOnce(event, eventId, parsed);
      this.#checkAge(parsed, at, eventId);
    } catch (error) {
      if (!(error instanceof SignatureError)) throw error;
      const code = error instanceof AnotherSigner ? 'another-signer' : undefined;
      this.#findings.judge('signature', [eventId], `event ${eventId}: ${error.message}`, { code });
    }
  }

  conclude(): void {
    if (this.unsignedMoves > 0)
      this.#findings.note('signature', `no signature covers ${this.unsignedMoves} of the moves`);
    const { origins, policy } = this.#context;
    if (!this.#hasOrigin || policy.origins?.length) return;
    const { doubt } = origins;
    if (doubt !== undefined) {
      this.#findings.undecided('origin', doubt);
      return;
    }
    this.#findings.judge('origin', []);
    this.#findings.note('origin', `it is ${origins.list}`);
  }

  #checkUnsigned({ type }: MoveEvent, eventId: number): void {
    this.unsignedMoves++;
    if (this.#context.policy.allowUnsigned) return;
    const problem = `event ${eventId} (${type}) has no signature: it is forged, or was accepted in development mode (--allow-unsigned)`;
    this.#findings.judge('signature', [eventId], problem, { code: 'unsigned' });
  }

  #checkTarget(event: MoveEvent, { method, targetUri }: RequestEvidence, eventId: number): void {
    const slice = moveOfEvent[event.type];
    const base = baseOf(targetUri, slice.path.replace(':id', String(event.chamberId)));
    if (base !== undefined) this.#checkOrigin(base, eventId);
    const problem = `event ${eventId} is ${event.type} in chamber ${event.chamberId}, but its request is ${method} ${targetUri}`;
    this.#findings.judge('target', [eventId], (method !== slice.method || base === undefined) && problem);
  }

  #checkOrigin(origin: string, eventId: number): void {
    this.#hasOrigin = true;
    const isKnown = this.#context.origins.take(origin);
    if (!this.#context.policy.origins?.length) return;
    this.#findings.judge(
      'origin',
      [eventId],
      !isKnown && `event ${eventId} was signed for ${origin}, which --origin does not name`,
    );
  }

  #checkOnce({ type, chamberId, ts }: MoveEvent, eventId: number, { signature }: ParsedSignature): void {
    const at = instantOf(ts);
    if (type === createChamber.event) {
      const first = this.#context.creations.add(signature, chamberId, at);
      const problem = first !== undefined && `event ${eventId} reuses the signature that created chamber ${first}`;
      this.#findings.judge('once', [eventId], problem);
    } else {
      const first = this.#signatures.add(signature, eventId, at);
      const problem = first !== undefined && `event ${eventId} reuses the signature of event ${first}`;
      this.#findings.judge('once', [first ?? eventId, eventId], problem);
    }
  }

  #checkAge(parsed: ParsedSignature, at: Millis, eventId: number): void {
    this.#findings.assess('age', [eventId], judgeAge(parsed, at, this.#context.policy), `event ${eventId} `);
  }
}

/** An age between the default and the cap is a doubt: the service may have configured a higher limit. */
export function judgeAge(
  { created, expires = Number.POSITIVE_INFINITY }: Pick<ParsedSignature, 'created' | 'expires'>,
  at: Millis,
  { maxAgeSeconds, maxSkewSeconds }: AuditPolicy,
): Outcome {
  const { defaults, caps } = SIGNATURE_AGES;
  const age = (at - created * 1000) / 1000;
  const limit = age < 0 ? (maxSkewSeconds ?? caps.maxSkewSeconds) : (maxAgeSeconds ?? caps.maxAgeSeconds);
  const usual = age < 0 ? (maxSkewSeconds ?? defaults.maxSkewSeconds) : (maxAgeSeconds ?? defaults.maxAgeSeconds);
  const signed = `was signed ${Math.abs(age)} s ${age < 0 ? 'after' : 'before'} its timestamp`;
  if (at >= expires * 1000) return `${signed}, and the signature had expired`;
  if (Math.abs(age) > limit) return `${signed}, but at most ${limit} s are accepted`;
  if (Math.abs(age) <= usual) return undefined;
  return {
    doubt: `${signed}: ${age < 0 ? '--max-skew' : '--max-age'} sets the number of seconds that the service accepts`,
  };
}

class AnotherSigner extends SignatureError {
  constructor(did: string, keyid: string) {
    super('key', `recorded as a move of ${did}, but signed by ${keyid}`);
  }
}

/** An ongoing signature verification. Its promise never rejects, so callers may drop it. */
export type Verification =
  | SignatureError
  | { readonly did: string; readonly parsed: ParsedSignature; readonly isValid: boolean | Promise<boolean> };

export function startVerification(
  request: RequestEvidence,
  did: string,
  { keys, verify }: Pick<AuditContext, 'keys' | 'verify'>,
): Verification {
  try {
    const parsed = parseSignature(request);
    if (parsed.keyid !== did) throw new AnotherSigner(did, parsed.keyid);
    const base = utf8.encode(signatureBase(parsed, request));
    return { did, parsed, isValid: verify(keyOf(did, keys), base, parsed.signature) };
  } catch (error) {
    if (error instanceof SignatureError) return error;
    throw error;
  }
}

export async function concludeVerification(verification: Verification): Promise<ParsedSignature> {
  if (verification instanceof SignatureError) throw verification;
  const { did, parsed, isValid } = verification;
  if (await isValid) return parsed;
  throw new SignatureError('verification', `${did} did not sign this request`);
}

const KEYS_MAX = 10_000;

function keyOf(did: string, keys: Map<string, VerifyingKey>): VerifyingKey {
  const known = keys.get(did);
  if (known !== undefined) return known;
  const publicKey = parseDid(did);
  if (publicKey === undefined) throw new SignatureError('key', `${did} is not a did:key of an Ed25519 key`);
  const weakness = weaknessOf(publicKey);
  if (weakness !== undefined) throw new SignatureError('key', `${did}: ${weakness}`);
  const key = toVerifyingKey(publicKey);
  if (keys.size === KEYS_MAX) keys.clear();
  keys.set(did, key);
  return key;
}

/**
 * Returns the service's base URL as the client used it; undefined if the URI does not end with `path`. Parses like the service's router:
 * resolves dot segments, normalises %-encodings and ignores the query.
 */
export function baseOf(targetUri: string, path: string): string | undefined {
  const target = parseTarget(targetUri);
  if (target === undefined || !HTTP.test(targetUri)) return undefined;
  return target.path.endsWith(path) ? target.origin + target.path.slice(0, -path.length) : undefined;
}

/** Normalises a base URL like baseOf; undefined if no request can target it. */
export function normalBase(url: string): string | undefined {
  const target = parseTarget(url);
  return target && target.origin + target.path.replace(/\/+$/, '');
}

/** An absolute http(s) URI with a path, without a fragment. */
const HTTP = /^https?:\/\/[^\s/?#@\\]+\/[^\s#\\]*$/i;
