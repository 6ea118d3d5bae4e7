// What the checker judges: requests with their responses, as clients saw them, and the lines of the log. Data alone, so that the
// histories of simulated and of real stores are judged alike.
import type { SignatureAges } from '../../../src/moves/rules.ts';
import type { ErrorCode } from '../../../src/vocabulary/errors.ts';
import type { Hex, JsonValue, Millis } from '../../../src/vocabulary/values.ts';

/** A chamber by its id, an account by its DID. */
export type Stream = number | string;

export interface AskedCommand {
  /** The name of a move, `register`, `changePersonality`, `retire`, or `record` for an event of the service. */
  readonly operation: string;
  /** Null for those outside of a chamber. */
  readonly chamberId: number | null;
  /** Null for the service. */
  readonly did: string | null;
  readonly body: JsonValue | undefined;
  /** The signature of the line's request, or any name that is the same for the same request; null for unsigned requests. */
  readonly signature: string | null;
  /** Unix seconds of the signature. */
  readonly created?: number;
  readonly expires?: number;
}

export interface AskedRead {
  readonly stream: Stream;
}

/** Members that the client can't know are absent. `line` is the whole event in canonical form. */
export interface AnsweredEvent {
  readonly eventId?: number | undefined;
  readonly chamberId?: number | null | undefined;
  readonly line?: string;
}

export type Outcome =
  | { readonly is: 'accepted'; readonly event: AnsweredEvent }
  /** A registration that repeats the last one. */
  | { readonly is: 'unchanged' }
  | { readonly is: 'rejected'; readonly code: ErrorCode }
  | { readonly is: 'read'; readonly lastEventId: number; readonly headHash?: Hex | undefined }
  /** What no client should be able to cause. */
  | { readonly is: 'defect'; readonly problem: string };

export interface HistoryRequest {
  /** Names it in problems. */
  readonly id: string;
  readonly asked: AskedCommand | AskedRead;
  /** Moments of one clock that all clients share; a later moment is a larger number. */
  readonly invokedAt: number;
  /** Undefined together with the outcome if there was no response. */
  readonly respondedAt?: number | undefined;
  readonly outcome?: Outcome | undefined;
  /** The range of times that the service's clock may have shown while the request was decided. Without it, rejections are not judged. */
  readonly clock?: { readonly from: Millis; readonly to: Millis } | undefined;
}

export interface HistoryCommit {
  readonly stream: Stream;
  readonly eventId: number;
  /** The moment, by the clients' clock. */
  readonly writtenAt: number;
}

export interface History {
  readonly requests: readonly HistoryRequest[];
  readonly lines: ReadonlyMap<Stream, readonly string[]>;
  /** All lines in the order of their commits, where the store tells it. */
  readonly commits?: readonly HistoryCommit[] | undefined;
  readonly limits: { readonly membersMax: number; readonly ideasMax: number; readonly openChambersPerDidMax: number };
  /** How old signatures may be, and how far ahead; the caps if it is absent. */
  readonly ages?: SignatureAges;
  /** Whether `requests` has everything that was sent: then each line must have been asked for. */
  readonly isComplete: boolean;
}
