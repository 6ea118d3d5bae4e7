// The evidence of one move: the signed request in its line, checked as the service had to check it (RFC 9421, RFC 9530).
import { digestProblem } from '../crypto/content-digest.ts';
import { parseDid, weaknessOf } from '../crypto/did-key.ts';
import {
  type ParsedSignature,
  parseSignature,
  parseTarget,
  SignatureError,
  signatureBase,
} from '../crypto/http-signature.ts';
import { isSignedBy, toVerifyingKey, type VerifyingKey } from '../crypto/verify.ts';
import { moveOfEvent } from '../moves/registry.ts';
import type { MoveEvent, RequestEvidence } from '../vocabulary/events.ts';
import { type Millis, SIGNATURE_AGES } from '../vocabulary/values.ts';
import type { AuditContext, AuditPolicy } from './context.ts';
import type { Findings } from './findings.ts';

export interface EvidenceOptions {
  readonly context: AuditContext;
  /** Decides as isSignedBy does, which is the default. */
  readonly verify?: typeof isSignedBy | undefined;
}

const utf8 = new TextEncoder();

export class EvidenceChecks {
  readonly #findings: Findings;
  readonly #verify: typeof isSignedBy;
  /** Its signatures take about 150 bytes for a move, the one thing that grows with the log. */
  readonly #context: AuditContext;
  unsignedMoves = 0;
  #hasOrigin = false;

  constructor(findings: Findings, { context, verify = isSignedBy }: EvidenceOptions) {
    this.#findings = findings;
    this.#context = context;
    this.#verify = verify;
  }

  check(event: MoveEvent, eventId: number): void {
    const { request } = event;
    if (request === null) {
      this.#checkUnsigned(event, eventId);
      return;
    }
    const problem = digestProblem(request.contentDigest, utf8.encode(request.body ?? ''));
    this.#findings.judge('digest', [eventId], problem && `event ${eventId}: ${problem}`);
    this.#checkTarget(event, request, eventId);
    try {
      const parsed = verifiedSignature(request, event.did, { keys: this.#context.keys, verify: this.#verify });
      this.#findings.judge('signature', [eventId]);
      this.#checkOnce(parsed, eventId);
      this.#checkAge(parsed, Date.parse(event.ts), eventId);
    } catch (error) {
      if (!(error instanceof SignatureError)) throw error;
      this.#findings.judge('signature', [eventId], `event ${eventId}: ${error.message}`);
    }
  }

  conclude(): void {
    if (this.unsignedMoves > 0) this.#findings.note('signature', `nobody signed ${this.unsignedMoves} of the moves`);
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
    this.#findings.judge('signature', [eventId], problem);
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
      !isKnown && `event ${eventId} was signed for ${origin}, which is not named`,
    );
  }

  #checkOnce({ signature }: ParsedSignature, eventId: number): void {
    // One byte a character.
    const text = signature.reduce((start, byte) => start + String.fromCharCode(byte), '');
    const first = this.#context.signatures.get(text);
    this.#context.signatures.set(text, first ?? eventId);
    const problem = first !== undefined && `event ${eventId} reuses the signature of event ${first}`;
    this.#findings.judge('once', [first ?? eventId, eventId], problem);
  }

  #checkAge(parsed: ParsedSignature, at: Millis, eventId: number): void {
    const { verdict, sentence } = judgeAge(parsed, at, this.#context.policy);
    if (verdict === 'undecided') this.#findings.undecided('age', `event ${eventId} ${sentence}`);
    else this.#findings.judge('age', [eventId], verdict === 'broken' && `event ${eventId} ${sentence}`);
  }
}

/** A service may be configured beyond the defaults, up to the caps. */
export function judgeAge(
  { created, expires = Number.POSITIVE_INFINITY }: Pick<ParsedSignature, 'created' | 'expires'>,
  at: Millis,
  { maxAgeSeconds, maxSkewSeconds }: AuditPolicy,
): { readonly verdict: 'verified' | 'broken' | 'undecided'; readonly sentence: string } {
  const { defaults, caps } = SIGNATURE_AGES;
  const age = (at - created * 1000) / 1000;
  const limit = age < 0 ? (maxSkewSeconds ?? caps.maxSkewSeconds) : (maxAgeSeconds ?? caps.maxAgeSeconds);
  const usual = age < 0 ? (maxSkewSeconds ?? defaults.maxSkewSeconds) : (maxAgeSeconds ?? defaults.maxAgeSeconds);
  const signed = `was signed ${Math.abs(age)} s ${age < 0 ? 'after' : 'before'} its timestamp`;
  if (at >= expires * 1000) return { verdict: 'broken', sentence: `${signed}, and the signature had expired` };
  if (Math.abs(age) > limit) return { verdict: 'broken', sentence: `${signed}, and at most ${limit} s are accepted` };
  const option = age < 0 ? '--max-skew' : '--max-age';
  const sentence = `${signed}: say with ${option} how many seconds the service accepts`;
  return { verdict: Math.abs(age) > usual ? 'undecided' : 'verified', sentence };
}

interface SignatureOptions {
  readonly keys: Map<string, VerifyingKey>;
  readonly verify: typeof isSignedBy;
}

/** Throws a SignatureError unless the agent signed the request. */
export function verifiedSignature(request: RequestEvidence, did: string, options: SignatureOptions): ParsedSignature {
  const parsed = parseSignature(request);
  if (parsed.keyid !== did)
    throw new SignatureError('key', `recorded as a move of ${did}, but signed by ${parsed.keyid}`);
  const base = utf8.encode(signatureBase(parsed, request));
  if (options.verify(keyOf(did, options.keys), base, parsed.signature)) return parsed;
  throw new SignatureError('verification', `${did} did not sign this request`);
}

function keyOf(did: string, keys: Map<string, VerifyingKey>): VerifyingKey {
  const known = keys.get(did);
  if (known !== undefined) return known;
  const publicKey = parseDid(did);
  if (publicKey === undefined) throw new SignatureError('key', `${did} is not a did:key of an Ed25519 key`);
  const weakness = weaknessOf(publicKey);
  if (weakness !== undefined) throw new SignatureError('key', `${did}: ${weakness}`);
  const key = toVerifyingKey(publicKey);
  keys.set(did, key);
  return key;
}

/**
 * The service's address as the client used it; undefined when the URI does not end in the path. Read as the service's router
 * reads it: dot segments resolved, %-encodings decoded, the query ignored.
 */
export function baseOf(targetUri: string, path: string): string | undefined {
  const target = parseTarget(targetUri);
  return target?.path.endsWith(path) ? target.origin + target.path.slice(0, -path.length) : undefined;
}
