// A request to the service, and what a client knows of the service: data.
import type { ReadLimits } from '../reading/limits.ts';
import type { Fetch } from '../reading/response.ts';
import type { Shape } from '../reading/shape.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { ClientError } from './error.ts';
import type { Heads } from './heads.ts';
import type { Signer } from './signing.ts';
import type { ServiceClock } from './time.ts';

export interface Service {
  /** The URL without a slash at the end. */
  readonly baseUrl: string;
  readonly clock: ServiceClock;
  readonly fetch: Fetch;
  /** How long a call that certainly changed nothing is retried, in milliseconds. */
  readonly patienceMillis: number;
  /** The same until it has responded for the first time. */
  readonly firstPatienceMillis: number;
  /** Whether it has ever responded. `logId` is the log that it named last. */
  readonly contact: { isMade: boolean; logId?: string | undefined };
  readonly onRetry: (retry: Retry) => void;
  /** Is called with what fails no call, such as a receipt that can't be kept. */
  readonly onWarning: (warning: string) => void;
  readonly limits: ReadLimits;
  /** What was read of each chamber, by this service's readers and agents. */
  readonly heads: Heads;
}

/** A request that is about to be sent again. */
export interface Retry {
  /** Why: no response, an overloaded service, a gateway without one. */
  readonly error: ClientError;
  /** The time to the next attempt. */
  readonly waitMillis: Millis;
}

export interface CallOptions {
  /** Aborts the wait with the signal's reason. A move in flight may still be accepted: check the chamber's events. */
  readonly signal?: AbortSignal;
}

export interface SendOptions extends CallOptions {
  /** Is called with each signed command before it is sent, and awaited. */
  readonly beforeSend?: (request: SignedRequest) => Promise<void>;
}

/** A signed command as it is sent. Sent again exactly, it gets its first response and nothing happens twice. */
export interface SignedRequest {
  readonly method: Call['method'];
  /** The path of the service that it is signed for. */
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Appended to the base URL, with its query. */
  readonly path: string;
  readonly body?: object | undefined;
  readonly signer?: Signer;
  /** Asks for a signed response. */
  readonly wantsReceipt?: boolean;
  /** The command as it was signed before, instead of a body and a signer. */
  readonly sent?: SignedRequest;
  readonly beforeSend?: SendOptions['beforeSend'];
  /**
   * How the response is read; as JSON by default. `list`: a JSON array, item by item. `page`: a Page of lines. `nothing`: the headers alone, to ask whether a
   * stream would be accepted.
   */
  readonly as?: 'json' | 'list' | 'text' | 'page' | 'nothing';
  /** How many lines a page may have; PAGE_LINES_MAX by default. */
  readonly linesMax?: number;
  /** The shape of a response as JSON, or of each item of a list; an object by default. */
  readonly shape?: Shape;
  /** The media type that is asked for, where the service has several. */
  readonly accept?: string;
  /** How long the service may wait before it responds, in milliseconds. */
  readonly waitMillis?: number;
}

/** Lines of a response, up to pageBytesMax and the call's linesMax. */
export interface Page {
  readonly lines: readonly string[];
  /** Whether the response held no more, and the service need not be asked for more. */
  readonly isEnd: boolean;
}

export const PAGE_LINES_MAX = 1_000;
