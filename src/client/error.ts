// The one error of this library: a refusal by the service, or a reason of the library's own (CLIENT_ERR_…).
import type { ErrorCode, ExpectedSignature } from '../vocabulary/errors.ts';

export type ClientErrorCode =
  | ErrorCode
  /** No answer: the service is away, or something between keeps it away. */
  | 'CLIENT_ERR_UNREACHABLE'
  /** An answer, but not this service's: most likely a wrong base URL. */
  | 'CLIENT_ERR_ANSWER'
  /** The stream's lines do not follow one another: altered, dropped, reordered, or another log under the same URL. */
  | 'CLIENT_ERR_CHAIN'
  /** A proof by the service that does not prove what it says. */
  | 'CLIENT_ERR_PROOF'
  /** There is nothing to reveal: no commitment in force, or its salt is in another store. */
  | 'CLIENT_ERR_COMMITMENT'
  | 'CLIENT_ERR_KEY'
  | 'CLIENT_ERR_INPUT';

const RETRYABLE: ReadonlySet<ClientErrorCode> = new Set<ClientErrorCode>([
  'FORUM_ERR_RATE',
  'FORUM_ERR_UNAVAILABLE',
  'FORUM_ERR_INTERNAL',
  'CLIENT_ERR_UNREACHABLE',
]);

interface ClientErrorOptions {
  readonly status?: number;
  readonly expected?: ExpectedSignature;
  readonly cause?: unknown;
}

export class ClientError extends Error {
  readonly code: ClientErrorCode;
  /** HTTP status of the answer; undefined where there was none. */
  readonly status: number | undefined;
  /** Beside a signature that does not verify: what the service built from the request, to compare with one's own. */
  readonly expected: ExpectedSignature | undefined;

  constructor(code: ClientErrorCode, detail: string, options: ClientErrorOptions = {}) {
    super(detail, { cause: options.cause });
    this.name = 'ClientError';
    this.code = code;
    this.status = options.status;
    this.expected = options.expected;
  }

  /** What was wrong, in a sentence that lets the caller mend it. */
  get detail(): string {
    return this.message;
  }

  /** Whether the same call may succeed later as it is. */
  get retryable(): boolean {
    return RETRYABLE.has(this.code);
  }
}
