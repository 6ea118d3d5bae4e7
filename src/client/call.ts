// Types of a request to the service, and of the client's state about the service.
import type { ReadLimits } from '../reading/limits.ts';
import type { Fetch } from '../reading/response.ts';
import type { Shape } from '../reading/shape.ts';
import type { ForumEvent } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { ClientError } from './error.ts';
import type { Heads } from './heads.ts';
import type { Signer } from './signing.ts';
import type { ServiceClock } from './time.ts';
import type { Warnings } from './warnings.ts';

export interface Service {
  /** The URL without a slash at the end. */
  readonly baseUrl: string;
  readonly clock: ServiceClock;
  readonly fetch: Fetch;
  /** How long a call that certainly changed nothing is retried, in milliseconds. */
  readonly patienceMillis: number;
  /** Replaces patienceMillis until the service has responded for the first time. */
  readonly firstPatienceMillis: number;
  /** `isMade` once the service has responded. `logId` is the last log that it named. */
  readonly contact: { isMade: boolean; logId?: string | undefined };
  readonly onRetry: (retry: Retry) => void;
  /** Called with problems that do not make a call fail, such as a receipt that can't be stored. */
  readonly onWarning: (warning: string) => void;
  /** Warnings about this service, shared by its readers and agents. */
  readonly warnings: Warnings;
  readonly limits: ReadLimits;
  /** The last event of each chamber that this service's readers and agents have read. */
  readonly heads: Heads;
  readonly stubs: Stubs;
}

/** Verifies stubs with the keys in the service's directory. */
export interface Stubs {
  knows(keyid: string): boolean;
  /** Replaces the directory with the service's response, which is not validated yet. */
  learn(directory: unknown): void;
  /** Returns the leaf of a line, given the line and its event; throws InvalidStub. */
  leafOf(line: Uint8Array, event: ForumEvent): Uint8Array;
}

/** A request that is about to be sent again. */
export interface Retry {
  readonly error: ClientError;
  /** The time until the next attempt. */
  readonly waitMillis: Millis;
}

export interface CallOptions {
  /** Aborts the wait with the signal's reason. A move in flight may still be accepted: check the chamber's events. */
  readonly signal?: AbortSignal;
}

export interface SendOptions extends CallOptions {
  /** Called with each signed command, and awaited, before it is sent. */
  readonly beforeSend?: (request: SignedRequest) => Promise<void>;
}

/** A signed command. If these bytes are sent again, the service repeats its first response and nothing happens twice. */
export interface SignedRequest {
  readonly method: Call['method'];
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
  readonly wantsReceipt?: boolean;
  /** A command that is already signed, instead of a body and a signer. */
  readonly sent?: SignedRequest;
  readonly beforeSend?: SendOptions['beforeSend'];
  /**
   * How the response is read; `json` by default. `list`: a JSON array, item by item. `page`: a Page of lines. `nothing`: only the headers,
   * to check whether the service would accept a stream.
   */
  readonly as?: 'json' | 'list' | 'text' | 'page' | 'nothing';
  /** PAGE_LINES_MAX by default. */
  readonly linesMax?: number;
  /** The shape of a response as JSON, or of each item of a list; an object by default. */
  readonly shape?: Shape;
  /** The requested media type, if the service has several. */
  readonly accept?: string;
  /** How long the service may wait before it responds, in milliseconds. */
  readonly waitMillis?: number;
}

/** The lines of a response, up to pageBytesMax and the call's linesMax. */
export interface Page {
  readonly lines: readonly string[];
  /** Whether the log has no more lines yet. */
  readonly isEnd: boolean;
}

export const PAGE_LINES_MAX = 1_000;
