import { ForumError } from '../vocabulary/errors.ts';
import { type Millis, toTimestamp } from '../vocabulary/values.ts';

export interface SignatureAges {
  readonly maxAgeSeconds: number;
  readonly maxSkewSeconds: number;
}

/** The times that a signature states, in seconds since 1970 (RFC 9421, section 2.3). */
export interface SignatureTimes {
  readonly created: number;
  readonly expires?: number;
}

/** Refuses a signature that is too old, from the future or expired at `now`; throws FORUM_ERR_SIGNATURE. */
export function requireFresh({ created, expires }: SignatureTimes, now: Millis, ages: SignatureAges): void {
  const age = now - created * 1000;
  if (age > ages.maxAgeSeconds * 1000) {
    throw stale(`created is ${age / 1000} s old, at most ${ages.maxAgeSeconds} s are accepted`, now);
  }
  if (-age > ages.maxSkewSeconds * 1000) {
    throw stale(`created lies ${-age / 1000} s ahead, at most ${ages.maxSkewSeconds} s are accepted`, now);
  }
  if (expires !== undefined && now >= expires * 1000) throw stale('the signature has expired', now);
}

function stale(reason: string, now: Millis): ForumError {
  return new ForumError('FORUM_ERR_SIGNATURE', `age: ${reason} (service time ${toTimestamp(now)})`);
}
