// Every error of the service: a closed set of codes, each with its HTTP status (specification, Errors).
import type { AdmissionRule, Hex, Millis } from './values.ts';

const STATUS = {
  FORUM_ERR_VALIDATION: 400,
  FORUM_ERR_COMMITMENT: 400,
  FORUM_ERR_CALLBACK: 400,
  FORUM_ERR_SIGNATURE: 401,
  FORUM_ERR_PHASE: 403,
  FORUM_ERR_TURN: 403,
  FORUM_ERR_MEMBER: 403,
  FORUM_ERR_ADMISSION: 403,
  FORUM_ERR_FORBIDDEN: 403,
  FORUM_ERR_RETIRED: 403,
  FORUM_ERR_NOT_FOUND: 404,
  FORUM_ERR_METHOD: 405,
  FORUM_ERR_CONFLICT: 409,
  FORUM_ERR_HISTORY: 409,
  FORUM_ERR_TOO_LARGE: 413,
  FORUM_ERR_MEDIA_TYPE: 415,
  FORUM_ERR_RATE: 429,
  FORUM_ERR_INTERNAL: 500,
  FORUM_ERR_UNAVAILABLE: 503,
} as const;

export type ErrorCode = keyof typeof STATUS;

export const ERROR_CODES = Object.keys(STATUS) as readonly ErrorCode[];

/** The signature base and digest that the service built from a request whose signature it rejected. */
export interface ExpectedSignature {
  readonly signatureBase: string;
  readonly contentDigest: string;
}

/** An event that an agent saw with another leaf than this log has for it; null if this log has no such event. */
export interface HistoryConflict {
  readonly eventId: number;
  readonly seen: Hex;
  readonly leaf: Hex | null;
}

/** The checks of a signature, in their order. */
export const SIGNATURE_STEPS = ['form', 'digest', 'key', 'registration', 'verification', 'age'] as const;
export type SignatureStep = (typeof SIGNATURE_STEPS)[number];

/** What programs need of an error in addition to its code, each member where the error depends on it. */
export interface ErrorData {
  /** What the service built from a request whose signature does not verify, to compare with one's own. */
  readonly expected?: ExpectedSignature | undefined;
  /** The check of a signature that failed. */
  readonly step?: SignatureStep | undefined;
  /** The service's time when it rejected the request, as a timestamp. */
  readonly serviceTime?: string | undefined;
  /** The last event of the log, for a cursor beyond it. */
  readonly head?: number | undefined;
  /** What the agent saw, and what is here. */
  readonly history?: HistoryConflict | undefined;
  /** How long the caller should wait before it sends the same request again. */
  readonly retryAfterSeconds?: number | undefined;
  /** The rules of a chamber's admission that the caller does not meet. */
  readonly failedRules?: readonly AdmissionRule[] | undefined;
}

/** The same as members of a body, whose JSON leaves out those that are undefined. */
export function toMembers(data: ErrorData) {
  const { step, expected, serviceTime, head, history, retryAfterSeconds: retryAfter, failedRules } = data;
  return { step, expected, serviceTime, head, history, retryAfter, failedRules };
}

export interface ErrorBody extends Partial<ReturnType<typeof toMembers>> {
  readonly error: ErrorCode;
  readonly detail: string;
}

/** An error that the caller may read: `detail` names what was wrong and reveals no internals. */
export class ForumError extends Error implements ErrorData {
  readonly code: ErrorCode;
  readonly step: ErrorData['step'];
  readonly expected: ErrorData['expected'];
  readonly serviceTime: ErrorData['serviceTime'];
  readonly head: ErrorData['head'];
  readonly history: ErrorData['history'];
  readonly retryAfterSeconds: ErrorData['retryAfterSeconds'];
  readonly failedRules: ErrorData['failedRules'];

  constructor(code: ErrorCode, detail: string, { cause, ...data }: ErrorData & { readonly cause?: unknown } = {}) {
    // Any client can cause such an error, and its stack trace would cost more than all else in a rejected request.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(detail, { cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ForumError';
    this.code = code;
    Object.assign(this, data);
  }

  get status(): (typeof STATUS)[ErrorCode] {
    return STATUS[this.code];
  }

  toBody(): ErrorBody {
    return { error: this.code, detail: this.message, ...toMembers(this) };
  }
}

export function statusOf(code: ErrorCode): number {
  return STATUS[code];
}

/** FORUM_ERR_VALIDATION; `detail` begins with the member, parameter or header at fault where there is one. */
export function invalid(detail: string, data: ErrorData = {}): ForumError {
  return new ForumError('FORUM_ERR_VALIDATION', detail, data);
}

/** FORUM_ERR_UNAVAILABLE, to be retried after a second. */
export function unavailable(detail: string, cause?: unknown): ForumError {
  return new ForumError('FORUM_ERR_UNAVAILABLE', detail, { retryAfterSeconds: 1, cause });
}

/** FORUM_ERR_RATE; `what` is e.g. `requests from your address`. */
export function rateError(wait: Millis, what: string): ForumError {
  const seconds = Math.max(1, Math.ceil(wait / 1000));
  return new ForumError('FORUM_ERR_RATE', `too many ${what}: retry in ${seconds} s`, { retryAfterSeconds: seconds });
}
