// The evidence of one move: the signed request in its line, checked as the service had to check it (RFC 9421, RFC 9530).
import { digestProblem } from '../crypto/content-digest.ts';
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
  /** By DID, the keys that were decoded: shared likewise, as decoding costs more than most checks. */
  readonly keys?: Map<string, VerifyingKey>;
  /** Decides as isSignedBy does, which is the default. */
  readonly verify?: typeof isSignedBy;
}

const utf8 = new TextEncoder();

export class EvidenceChecks {
  readonly #findings: Findings;
  readonly #verify: typeof isSignedBy;
  readonly #keys: Map<string, VerifyingKey>;
  /** About 150 bytes for a move, the one thing that grows with the log. */
  readonly #signatures: Map<string, number>;
  readonly #origins = new Set<string>();

  constructor(findings: Findings, options: EvidenceOptions) {
    const { signatures = new Map(), keys = new Map(), verify = isSignedBy } = options;
    this.#findings = findings;
    this.#keys = keys;
    this.#signatures = signatures;
    this.#verify = verify;
  }

  check(event: MoveEvent, eventId: number): void {
    const { request } = event;
    if (request === null) {
      const unsigned = `event ${eventId} (${event.type}) has no signature: it is forged, or was accepted in development mode`;
      this.#findings.judge('signature', [eventId], unsigned);
      return;
    }
    const problem = digestProblem(request.contentDigest, utf8.encode(request.body ?? ''));
    this.#findings.judge('digest', [eventId], problem && `event ${eventId}: ${problem}`);
    this.#checkTarget(event, request, eventId);
    try {
      const parsed = this.#verified(request, event.did);
      this.#findings.judge('signature', [eventId]);
      this.#checkOnce(parsed, eventId);
      this.#checkAge(parsed, Date.parse(event.ts) / 1000, eventId);
    } catch (error) {
      if (!(error instanceof SignatureError)) throw error;
      this.#findings.judge('signature', [eventId], `event ${eventId}: ${error.message}`);
    }
  }

  conclude(): void {
    const count = this.#origins.size;
    const named = [...this.#origins].slice(0, ORIGINS_NAMED_MAX).join(', ');
    if (count === 1) {
      this.#findings.judge('origin', []);
      this.#findings.note('origin', `it is ${named}`);
    } else if (count > 1) {
      const list = count > ORIGINS_NAMED_MAX ? `${named} …` : named;
      const reason = `requests were signed for ${count} origins (${list}): only the operator knows whether all belong to the service`;
      this.#findings.notEvaluated(reason, 'origin');
    }
  }

  #checkTarget(event: MoveEvent, { method, targetUri }: RequestEvidence, eventId: number): void {
    const slice = moveOfEvent[event.type];
    const base = baseOf(targetUri, slice.path.replace(':id', String(event.chamberId)));
    if (base !== undefined) this.#origins.add(base);
    const problem = `event ${eventId} is ${event.type} in chamber ${event.chamberId}, but its request is ${method} ${targetUri}`;
    this.#findings.judge('target', [eventId], (method !== slice.method || base === undefined) && problem);
  }

  /** Throws a SignatureError unless the agent signed the request. */
  #verified(request: RequestEvidence, did: string): ParsedSignature {
    const parsed = parseSignature(request);
    if (parsed.keyid !== did)
      throw new SignatureError('key', `recorded as a move of ${did}, but signed by ${parsed.keyid}`);
    const base = utf8.encode(signatureBase(parsed, request));
    if (this.#verify(this.#keyOf(did), base, parsed.signature)) return parsed;
    throw new SignatureError('verification', `${did} did not sign this request`);
  }

  #keyOf(did: string): VerifyingKey {
    const known = this.#keys.get(did);
    if (known !== undefined) return known;
    const publicKey = parseDid(did);
    if (publicKey === undefined) throw new SignatureError('key', `${did} is not a did:key of an Ed25519 key`);
    const weakness = weaknessOf(publicKey);
    if (weakness !== undefined) throw new SignatureError('key', `${did}: ${weakness}`);
    const key = toVerifyingKey(publicKey);
    this.#keys.set(did, key);
    return key;
  }

  #checkOnce({ signature }: ParsedSignature, eventId: number): void {
    // One byte a character.
    const text = signature.reduce((start, byte) => start + String.fromCharCode(byte), '');
    const first = this.#signatures.get(text);
    this.#signatures.set(text, first ?? eventId);
    const problem = first !== undefined && `event ${eventId} reuses the signature of event ${first}`;
    this.#findings.judge('once', [first ?? eventId, eventId], problem);
  }

  /** Not evaluated beyond the defaults: the limits are the service's, and its clock may have been set back in between. */
  #checkAge({ created, expires = Number.POSITIVE_INFINITY }: ParsedSignature, at: number, eventId: number): void {
    const age = Math.round(at - created);
    if (age <= AGE_SECONDS_MAX && age >= -SKEW_SECONDS_MAX && at < expires) {
      this.#findings.judge('age', [eventId]);
      return;
    }
    const signed = age < 0 ? `${-age} s after` : `${age} s before`;
    const expired = at < expires ? '' : ' and had expired';
    const reason = `event ${eventId} was signed ${signed} its timestamp${expired}: a service rejects that by default, but its clock and limits are its own`;
    this.#findings.notEvaluated(reason, 'age');
  }
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
