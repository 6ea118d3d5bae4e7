// The evidence of one move: the signed request in its line, checked as the service had to check it (RFC 9421, RFC 9530).
import { hasDigest } from '../crypto/content-digest.ts';
import { parseDid, weaknessOf } from '../crypto/did-key.ts';
import { type ParsedSignature, parseSignature, signatureBase } from '../crypto/http-signature.ts';
import { SignatureRefusal } from '../crypto/signature-refusal.ts';
import { isSignedBy, toVerifyingKey, type VerifyingKey } from '../crypto/verify.ts';
import type { MoveEvent, RequestEvidence } from '../vocabulary/events.ts';
import type { Ledger } from './ledger.ts';
import { signedTarget } from './operations.ts';

/** What a service accepts unless it is configured otherwise, in seconds. */
const AGE_SECONDS_MAX = 300;
const SKEW_SECONDS_MAX = 60;
const ORIGINS_NAMED_MAX = 3;

export class EvidenceChecks {
  readonly #ledger: Ledger;
  readonly #keys = new Map<string, VerifyingKey | SignatureRefusal>();
  /** The event of each signature: about 150 bytes for a move, the one thing that grows with the log. */
  readonly #signatures: Map<string, number>;
  readonly #origins = new Set<string>();

  /** `signatures` is shared where several chambers of one log are audited. */
  constructor(ledger: Ledger, signatures = new Map<string, number>()) {
    this.#ledger = ledger;
    this.#signatures = signatures;
  }

  check(event: MoveEvent, eventId: number): void {
    const { request } = event;
    if (request === null) {
      const sentence = `event ${eventId} (${event.type}) carries no signature: it is forged, or was taken in development mode`;
      this.#ledger.broken('signature', [eventId], sentence);
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
    const origins = [...this.#origins];
    const named = origins.slice(0, ORIGINS_NAMED_MAX).join(', ') + (origins.length > ORIGINS_NAMED_MAX ? ' …' : '');
    const several = `requests were signed for ${origins.length} addresses (${named}): its operator knows whether all are the service’s`;
    if (origins.length > 1) this.#ledger.notEvaluated('origin', several);
    if (origins.length !== 1) return;
    this.#ledger.verified('origin');
    this.#ledger.note('origin', `it is ${named}`);
  }

  #checkDigest({ contentDigest, body }: RequestEvidence, eventId: number): void {
    const verdict = hasDigest(contentDigest, Buffer.from(body ?? ''));
    const problem = verdict.ok ? '' : verdict.problem;
    this.#ledger.judge('digest', verdict.ok, { eventIds: [eventId], sentence: `event ${eventId}: ${problem}` });
  }

  #checkTarget(event: MoveEvent, { method, targetUri }: RequestEvidence, eventId: number): void {
    const target = signedTarget(event);
    if (target !== undefined) this.#origins.add(target.base);
    this.#ledger.judge('target', method === 'POST' && target !== undefined, {
      eventIds: [eventId],
      sentence: `event ${eventId} is ${event.type} in chamber ${event.chamberId}, its request ${method} ${targetUri}`,
    });
  }

  #checkSignature(event: MoveEvent, request: RequestEvidence, eventId: number): ParsedSignature | undefined {
    try {
      const parsed = parseSignature(request);
      this.#requireSigned(parsed, event.did, request);
      this.#ledger.verified('signature');
      return parsed;
    } catch (error) {
      if (!(error instanceof SignatureRefusal)) throw error;
      this.#ledger.broken('signature', [eventId], `event ${eventId}: ${error.message}`);
      return undefined;
    }
  }

  #requireSigned(parsed: ParsedSignature, did: string, request: RequestEvidence): void {
    if (parsed.keyid !== did)
      throw new SignatureRefusal('key', `recorded as a move of ${did}, signed by ${parsed.keyid}`);
    const base = Buffer.from(signatureBase(parsed, request));
    if (isSignedBy(this.#keyOf(did), base, parsed.signature)) return;
    throw new SignatureRefusal('verification', `the signature is not by ${did} over this request`);
  }

  #keyOf(did: string): VerifyingKey {
    const known = this.#keys.get(did) ?? toKey(did);
    this.#keys.set(did, known);
    if (known instanceof SignatureRefusal) throw known;
    return known;
  }

  #checkOnce({ signature }: ParsedSignature, eventId: number): void {
    const text = Buffer.from(signature).toString('latin1');
    const first = this.#signatures.get(text);
    this.#signatures.set(text, first ?? eventId);
    const sentence = `event ${eventId} carries the signature of event ${first} again`;
    this.#ledger.judge('once', first === undefined, { eventIds: [first ?? eventId, eventId], sentence });
  }

  /** Not evaluated beyond the defaults: the limits are the service's, and its clock may have been set back in between. */
  #checkAge({ created, expires = Number.POSITIVE_INFINITY }: ParsedSignature, at: number, eventId: number): void {
    const age = Math.round(at - created);
    const isFresh = age <= AGE_SECONDS_MAX && age >= -SKEW_SECONDS_MAX && at < expires;
    const signed = age < 0 ? `${-age} s after` : `${age} s before`;
    const expired = at < expires ? '' : ', and had expired';
    const reason = `event ${eventId} was signed ${signed} its time${expired}: by default a service refuses that, but clock and limits are its own`;
    if (isFresh) this.#ledger.verified('age');
    else this.#ledger.notEvaluated('age', reason);
  }
}

function toKey(did: string): VerifyingKey | SignatureRefusal {
  const publicKey = parseDid(did);
  if (publicKey === undefined) return new SignatureRefusal('key', `${did} is no did:key of an Ed25519 key`);
  const weakness = weaknessOf(publicKey);
  return weakness === undefined ? toVerifyingKey(publicKey) : new SignatureRefusal('key', `${did}: ${weakness}`);
}
