// The service's errors: a closed set of codes, each with an HTTP status (specification, Errors).
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

/** The signature base and digest that the service computed from a request whose signature it rejected. */
export interface ExpectedSignature {
  readonly signatureBase: string;
  readonly contentDigest: string;
}

/** An event whose leaf in this log differs from the one that the agent saw. `leaf` is null if this log has no such event. */
export interface HistoryConflict {
  readonly eventId: number;
  readonly seen: Hex;
  readonly leaf: Hex | null;
}

/** The checks of a signature, in order. */
export const SIGNATURE_STEPS = ['form', 'digest', 'key', 'registration', 'verification', 'age'] as const;
export type SignatureStep = (typeof SIGNATURE_STEPS)[number];

/** Data for programs, in addition to the error code. Each member occurs only in errors that depend on it. */
export interface ErrorData {
  /** For a signature that does not verify: the values that the service computed, for comparison with the client's own. */
  readonly expected?: ExpectedSignature | undefined;
  /** The signature check that failed. */
  readonly step?: SignatureStep | undefined;
  /** The service's time when it rejected the request; an ISO 8601 timestamp. */
  readonly serviceTime?: string | undefined;
  /** The id of the log's last event, if the cursor is beyond it. */
  readonly head?: number | undefined;
  readonly history?: HistoryConflict | undefined;
  /** How long the caller should wait before retrying. */
  readonly retryAfterSeconds?: number | undefined;
  /** The chamber's admission rules that the caller does not meet. */
  readonly failedRules?: readonly AdmissionRule[] | undefined;
  /** The move may be in the log, because the database did not confirm or reject it. Absent if nothing was accepted. */
  readonly mayBeAccepted?: true | undefined;
}

/** Returns the data as members of a response body. JSON omits undefined members. */
export function toMembers(data: ErrorData) {
  const { retryAfterSeconds: retryAfter, ...others } = data;
  const { step, expected, serviceTime, head, history, failedRules, mayBeAccepted } = others;
  return { step, expected, serviceTime, head, history, retryAfter, failedRules, mayBeAccepted };
}

export interface ErrorBody extends Partial<ReturnType<typeof toMembers>> {
  readonly error: ErrorCode;
  readonly detail: string;
}

/** An error that is reported to the caller, so `detail` must not reveal internals. */
export class ForumError extends Error implements ErrorData {
  readonly code: ErrorCode;
  readonly step: ErrorData['step'];
  readonly expected: ErrorData['expected'];
  readonly serviceTime: ErrorData['serviceTime'];
  readonly head: ErrorData['head'];
  readonly history: ErrorData['history'];
  readonly retryAfterSeconds: ErrorData['retryAfterSeconds'];
  readonly failedRules: ErrorData['failedRules'];
  readonly mayBeAccepted: ErrorData['mayBeAccepted'];

  constructor(code: ErrorCode, detail: string, { cause, ...data }: ErrorData & { readonly cause?: unknown } = {}) {
    // Any client can cause such an error, and a stack trace would cost more than everything else in a rejected request.
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

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function statusOf(code: ErrorCode): number {
  return STATUS[code];
}

/** FORUM_ERR_VALIDATION. `detail` begins with the invalid member, parameter or header, if there is one. */
export function invalid(detail: string, data: ErrorData = {}): ForumError {
  return new ForumError('FORUM_ERR_VALIDATION', detail, data);
}

export function conflict(detail: string): ForumError {
  return new ForumError('FORUM_ERR_CONFLICT', detail);
}

/** FORUM_ERR_UNAVAILABLE, with a retry after one second. */
export function unavailable(detail: string, cause?: unknown): ForumError {
  return new ForumError('FORUM_ERR_UNAVAILABLE', detail, { retryAfterSeconds: 1, cause });
}

/** FORUM_ERR_RATE. `what` is, for example, `requests from your address`. */
export function rateError(wait: Millis, what: string): ForumError {
  const seconds = Math.max(1, Math.ceil(wait / 1000));
  return new ForumError('FORUM_ERR_RATE', `too many ${what}: retry in ${seconds} s`, { retryAfterSeconds: seconds });
}
