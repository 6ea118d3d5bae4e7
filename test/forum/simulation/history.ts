// The checker's input: requests and responses as clients saw them, and the lines of the log. The types hold plain data, so that
// histories of simulated and real stores are judged alike.
import type { SignatureAges } from '../../../src/moves/rules.ts';
import type { ErrorCode } from '../../../src/vocabulary/errors.ts';
import type { Hex, JsonValue, Millis } from '../../../src/vocabulary/values.ts';

/** A chamber id or an account's DID. */
export type Stream = number | string;

export interface AskedCommand {
  /** The name of a move, or `register`, `changePersonality`, `retire`, or `record` for an event of the service. */
  readonly operation: string;
  /** Null if the command belongs to no chamber. */
  readonly chamberId: number | null;
  /** Null for the service. */
  readonly did: string | null;
  readonly body: JsonValue | undefined;
  /** The signature of the line's request, or any name that identifies the request; null for unsigned requests. */
  readonly signature: string | null;
  /** The time of the signature in Unix seconds. */
  readonly created?: number;
  readonly expires?: number;
}

export interface AskedRead {
  readonly stream: Stream;
}

/** A response's event; members that the client cannot know are absent. `line` is the whole event in canonical form. */
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
  /** An internal error, which no client should be able to cause. */
  | { readonly is: 'defect'; readonly problem: string };

export interface HistoryRequest {
  /** The name by which problems refer to the request. */
  readonly id: string;
  readonly asked: AskedCommand | AskedRead;
  /** Moments of a clock that all clients share; later moments are larger numbers. */
  readonly invokedAt: number;
  /** This and the outcome are undefined if there was no response. */
  readonly respondedAt?: number | undefined;
  readonly outcome?: Outcome | undefined;
  /** The range of times that the service's clock may have shown at the decision. Without it, rejections are not judged. */
  readonly clock?: { readonly from: Millis; readonly to: Millis } | undefined;
}

export interface HistoryCommit {
  readonly stream: Stream;
  readonly eventId: number;
  /** The moment of the commit, by the clients' clock. */
  readonly writtenAt: number;
}

export interface History {
  readonly requests: readonly HistoryRequest[];
  readonly lines: ReadonlyMap<Stream, readonly string[]>;
  /** All lines in commit order, if the store reports it. */
  readonly commits?: readonly HistoryCommit[] | undefined;
  readonly limits: { readonly membersMax: number; readonly ideasMax: number; readonly openChambersPerDidMax: number };
  /** The maximum age of signatures, and how far they may be in the future; the specification's limits by default. */
  readonly ages?: SignatureAges;
  /** Whether `requests` holds every sent request, so that each line must have been requested. */
  readonly isComplete: boolean;
}
