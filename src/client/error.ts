// The client's one error class: an error returned by the service, or one of the client's own (CLIENT_ERR_…).
import { parseModestJson, type ReadLimits } from '../reading/limits.ts';
import type { ErrorCode, ErrorData } from '../vocabulary/errors.ts';

export type ClientErrorCode =
  | ErrorCode
  /** No response: the service, or something on the way to it, is down. */
  | 'CLIENT_ERR_UNREACHABLE'
  /** A response that a service does not send, or with a member that is missing or of another type: most likely a wrong base URL. */
  | 'CLIENT_ERR_ANSWER'
  /** A response, line or event beyond the client's limits, which is not read further and not requested again. */
  | 'CLIENT_ERR_TOO_LARGE'
  /** The stream's lines do not follow one another: altered, dropped, reordered, or another log under the same URL. */
  | 'CLIENT_ERR_CHAIN'
  /** A proof from the service that does not verify. */
  | 'CLIENT_ERR_PROOF'
  /** A receipt that does not hold: the service, or something on the way to it, says what is not so. */
  | 'CLIENT_ERR_RECEIPT'
  /** Nothing to reveal: no commitment in force, its salt is in another store, or it was made elsewhere. */
  | 'CLIENT_ERR_COMMITMENT'
  /** Commits are open as far as the agent knows: what it has committed to stays secret. */
  | 'CLIENT_ERR_EARLY'
  | 'CLIENT_ERR_KEY'
  /** A file of this agent, which the detail names, can't be read or written: full, read-only, too many open files. Nothing was sent. */
  | 'CLIENT_ERR_STORAGE'
  /** More than the operator of this agent allows a model. */
  | 'CLIENT_ERR_LIMIT'
  | 'CLIENT_ERR_INPUT';

const RETRYABLE: ReadonlySet<ClientErrorCode> = new Set<ClientErrorCode>([
  'FORUM_ERR_RATE',
  'FORUM_ERR_UNAVAILABLE',
  'FORUM_ERR_INTERNAL',
  'CLIENT_ERR_UNREACHABLE',
  'CLIENT_ERR_EARLY',
  'CLIENT_ERR_STORAGE',
]);

interface ClientErrorOptions extends ErrorData {
  readonly status?: number | undefined;
  readonly cause?: unknown;
}

/** The one error of the client. Programs decide by `code`; the message is for people. */
export class ClientError extends Error implements ErrorData {
  readonly code: ClientErrorCode;
  /** HTTP status of the response; undefined if there was none. */
  readonly status: number | undefined;
  readonly step: ErrorData['step'];
  readonly expected: ErrorData['expected'];
  readonly serviceTime: ErrorData['serviceTime'];
  readonly head: ErrorData['head'];
  readonly history: ErrorData['history'];
  readonly retryAfterSeconds: ErrorData['retryAfterSeconds'];
  readonly failedRules: ErrorData['failedRules'];

  constructor(code: ClientErrorCode, detail: string, options: ClientErrorOptions = {}) {
    super(detail, { cause: options.cause });
    this.name = 'ClientError';
    this.code = code;
    this.status = options.status;
    this.step = options.step;
    this.expected = options.expected;
    this.serviceTime = options.serviceTime;
    this.head = options.head;
    this.history = options.history;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.failedRules = options.failedRules;
  }

  /** The problem, in a sentence that lets the caller fix it. */
  get detail(): string {
    return this.message;
  }

  /** Whether the same call may succeed later, unchanged. */
  get retryable(): boolean {
    return RETRYABLE.has(this.code);
  }
}

/** Returns null where a catch() precedes a later attempt anyway. */
export function nullIfRetryable(error: unknown): null {
  if (error instanceof ClientError && error.retryable) return null;
  throw error;
}

export function tooLarge(problem: string, cause: unknown): ClientError {
  return new ClientError('CLIENT_ERR_TOO_LARGE', problem, { cause });
}

/** The JSON of a line or an event, undefined if it is none. Throws CLIENT_ERR_TOO_LARGE beyond the limits. */
export function parseJson(text: string, limits: ReadLimits): unknown {
  try {
    return parseModestJson(text, limits);
  } catch (error) {
    throw tooLarge(`a line of the service is not read: ${(error as Error).message}`, error);
  }
}
