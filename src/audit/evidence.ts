// The evidence of one move: the signed request in its line, checked as the service had to check it (RFC 9421, RFC 9530).
import { hasDigest } from '../crypto/content-digest.ts';
import { parseDid, weaknessOf } from '../crypto/did-key.ts';
import { type ParsedSignature, parseSignature, SignatureError, signatureBase } from '../crypto/http-signature.ts';
import { isSignedBy, toVerifyingKey, type VerifyingKey } from '../crypto/verify.ts';
import { moveOfEvent } from '../moves/registry.ts';
import type { MoveEvent, RequestEvidence } from '../vocabulary/events.ts';
import type { Findings } from './findings.ts';

/** What a service accepts unless it is configured otherwise, in seconds. */
const AGE_SECONDS_MAX = 300;
const SKEW_SECONDS_MAX = 60;
const ORIGINS_NAMED_MAX = 3;

export interface EvidenceOptions {
  /** By signature, the event that carries it: shared where several chambers of one log are audited. */
  readonly signatures?: Map<string, number>;
  /** Decides as isSignedBy does, which is the default. */
  readonly verify?: typeof isSignedBy;
}

const utf8 = new TextEncoder();

export class EvidenceChecks {
  readonly #findings: Findings;
  readonly #verify: typeof isSignedBy;
  readonly #keys = new Map<string, VerifyingKey | SignatureError>();
  /** About 150 bytes for a move, the one thing that grows with the log. */
  readonly #signatures: Map<string, number>;
  readonly #origins = new Set<string>();

  constructor(findings: Findings, { signatures = new Map(), verify = isSignedBy }: EvidenceOptions) {
    this.#findings = findings;
    this.#signatures = signatures;
    this.#verify = verify;
  }

  check(event: MoveEvent, eventId: number): void {
    const { request } = event;
    if (request === null) {
      const sentence = `event ${eventId} (${event.type}) has no signature: it is forged, or was accepted in development mode`;
      this.#findings.broken('signature', [eventId], sentence);
      return;
    }
    this.#checkDigest(request, eventId);
    this.#checkTarget(event, request, eventId);
    const parsed = this.#checkSignature(event, request, eventId);
    if (parsed === undefined) return;
    this.#checkOnce(parsed, eventId);
    this.#checkAge(parsed, Date.parse(event.ts) / 1000, eventId);
  }

  conclude(): void {
    const count = this.#origins.size;
    if (count === 0) return;
    const named = [...this.#origins].slice(0, ORIGINS_NAMED_MAX).join(', ');
    if (count === 1) {
      this.#findings.verified('origin');
      this.#findings.note('origin', `it is ${named}`);
      return;
    }
    const list = count > ORIGINS_NAMED_MAX ? `${named} …` : named;
    const reason = `requests were signed for ${count} origins (${list}): only the operator knows whether all belong to the service`;
    this.#findings.notEvaluated('origin', reason);
  }

  #checkDigest({ contentDigest, body }: RequestEvidence, eventId: number): void {
    const verdict = hasDigest(contentDigest, utf8.encode(body ?? ''));
    const problem = verdict.ok ? '' : verdict.problem;
    this.#findings.judge('digest', verdict.ok, { eventIds: [eventId], sentence: `event ${eventId}: ${problem}` });
  }

  #checkTarget(event: MoveEvent, { method, targetUri }: RequestEvidence, eventId: number): void {
    const slice = moveOfEvent[event.type];
    const base = baseOf(targetUri, slice.path.replace(':id', String(event.chamberId)));
    if (base !== undefined) this.#origins.add(base);
    this.#findings.judge('target', method === slice.method && base !== undefined, {
      eventIds: [eventId],
      sentence: `event ${eventId} is ${event.type} in chamber ${event.chamberId}, but its request is ${method} ${targetUri}`,
    });
  }

  #checkSignature(event: MoveEvent, request: RequestEvidence, eventId: number): ParsedSignature | undefined {
    try {
      const parsed = parseSignature(request);
      this.#requireSigned(parsed, event.did, request);
      this.#findings.verified('signature');
      return parsed;
    } catch (error) {
      if (!(error instanceof SignatureError)) throw error;
      this.#findings.broken('signature', [eventId], `event ${eventId}: ${error.message}`);
      return undefined;
    }
  }

  #requireSigned(parsed: ParsedSignature, did: string, request: RequestEvidence): void {
    if (parsed.keyid !== did)
      throw new SignatureError('key', `recorded as a move of ${did}, but signed by ${parsed.keyid}`);
    const base = utf8.encode(signatureBase(parsed, request));
    if (this.#verify(this.#keyOf(did), base, parsed.signature)) return;
    throw new SignatureError('verification', `${did} did not sign this request`);
  }

  #keyOf(did: string): VerifyingKey {
    const key = this.#keys.get(did) ?? toKey(did);
    this.#keys.set(did, key);
    if (key instanceof SignatureError) throw key;
    return key;
  }

  #checkOnce({ signature }: ParsedSignature, eventId: number): void {
    // One byte a character.
    const text = signature.reduce((start, byte) => start + String.fromCharCode(byte), '');
    const first = this.#signatures.get(text);
    this.#signatures.set(text, first ?? eventId);
    const sentence = `event ${eventId} reuses the signature of event ${first}`;
    this.#findings.judge('once', first === undefined, { eventIds: [first ?? eventId, eventId], sentence });
  }

  /** Not evaluated beyond the defaults: the limits are the service's, and its clock may have been set back in between. */
  #checkAge({ created, expires = Number.POSITIVE_INFINITY }: ParsedSignature, at: number, eventId: number): void {
    const age = Math.round(at - created);
    const isFresh = age <= AGE_SECONDS_MAX && age >= -SKEW_SECONDS_MAX && at < expires;
    const signed = age < 0 ? `${-age} s after` : `${age} s before`;
    const expired = at < expires ? '' : ' and had expired';
    const reason = `event ${eventId} was signed ${signed} its timestamp${expired}: a service rejects that by default, but its clock and limits are its own`;
    if (isFresh) this.#findings.verified('age');
    else this.#findings.notEvaluated('age', reason);
  }
}

function toKey(did: string): VerifyingKey | SignatureError {
  const publicKey = parseDid(did);
  if (publicKey === undefined) return new SignatureError('key', `${did} is not a did:key of an Ed25519 key`);
  const weakness = weaknessOf(publicKey);
  return weakness === undefined ? toVerifyingKey(publicKey) : new SignatureError('key', `${did}: ${weakness}`);
}

/**
 * The service's address as the client used it; undefined when the URI does not end in the path. Read as the service's router
 * reads it: dot segments resolved, %-encodings decoded, the query ignored.
 */
function baseOf(targetUri: string, path: string): string | undefined {
  try {
    const { origin, pathname } = new URL(targetUri);
    const decoded = decodeURI(pathname);
    return decoded.endsWith(path) ? origin + decoded.slice(0, -path.length) : undefined;
  } catch {
    return undefined;
  }
}
