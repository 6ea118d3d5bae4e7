// The client's error class, for the service's errors and the client's own (CLIENT_ERR_…).
import { parseBoundedJson, type ReadLimits } from '../reading/limits.ts';
import type { ErrorCode, ErrorData } from '../vocabulary/errors.ts';

export type ClientErrorCode =
  | ErrorCode
  /** No response: the service or the network is down. */
  | 'CLIENT_ERR_UNREACHABLE'
  /** The response is not one that a service sends, or a member is missing or has the wrong type: most likely the base URL is wrong. */
  | 'CLIENT_ERR_ANSWER'
  /** A response, line or event exceeds the client's limits. The client does not request it again. */
  | 'CLIENT_ERR_TOO_LARGE'
  /** The stream's lines do not follow one another: they were altered, dropped or reordered, or the URL now serves another log. */
  | 'CLIENT_ERR_CHAIN'
  /** A proof from the service does not verify. */
  | 'CLIENT_ERR_PROOF'
  /** A receipt does not verify, or contradicts the response. */
  | 'CLIENT_ERR_RECEIPT'
  /** The service did not sign the request to the agent's callback URL. */
  | 'CLIENT_ERR_CALLBACK'
  /** There is nothing to reveal: the agent has no commitment here, its salt is in another store, or it was made elsewhere. */
  | 'CLIENT_ERR_COMMITMENT'
  /** Commits are open as far as the agent knows, so it keeps its allocations secret. */
  | 'CLIENT_ERR_EARLY'
  | 'CLIENT_ERR_KEY'
  /** A file of this agent can't be read or written: full disk, read-only, too many open files. Nothing was sent. */
  | 'CLIENT_ERR_STORAGE'
  /** The call would exceed a limit that this agent's operator set for the model. */
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

/** Programs read `code`; the message is for people. */
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
  readonly mayBeAccepted: ErrorData['mayBeAccepted'];

  constructor(code: ClientErrorCode, detail: string, { cause, ...data }: ClientErrorOptions = {}) {
    super(detail, { cause });
    // `data` may be another ClientError, so the code and the name are set last.
    Object.assign(this, data);
    this.name = 'ClientError';
    this.code = code;
  }

  get detail(): string {
    return this.message;
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return RETRYABLE.has(this.code);
  }
}

/** Handles the error of a call that is repeated later: returns null for a retryable error, otherwise rethrows. */
export function nullIfRetryable(error: unknown): null {
  if (error instanceof ClientError && error.retryable) return null;
  throw error;
}

export function tooLarge(problem: string, cause: unknown): ClientError {
  return new ClientError('CLIENT_ERR_TOO_LARGE', problem, { cause });
}

/** Returns undefined if the line is not JSON. Throws CLIENT_ERR_TOO_LARGE if the line exceeds the limits. */
export function parseJson(text: string, limits: ReadLimits): unknown {
  try {
    return parseBoundedJson(text, limits);
  } catch (error) {
    throw tooLarge(`a line from the service was rejected: ${(error as Error).message}`, error);
  }
}
