// One signature to verify and the way its answer goes back.
import { ForumError } from '../vocabulary/errors.ts';

export interface Question {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
  readonly resolve: (isValid: boolean) => void;
  readonly reject: (reason: unknown) => void;
}

/** Why a signature was not verified at all. */
export function unavailable(detail: string): ForumError {
  return new ForumError('FORUM_ERR_UNAVAILABLE', detail, { headers: { 'Retry-After': '1' } });
}

export const TOO_MANY_WAITING = 'too many signatures are waiting to be verified; retry';
