// A batch: commands that are decided one after another, each on top of those before it, and written by one append.
import type { AppendBatch, AppendResult, LogEntry, Registration } from '../log/log.ts';
import type { StreamId } from '../log/stream-id.ts';
import type { ReadChain } from '../moves/chain-question.ts';
import type { Payer } from '../process/main-thread.ts';
import type { ForumEvent } from '../vocabulary/events.ts';
import type { Hex } from '../vocabulary/values.ts';
import { NO_ANSWER } from './chain-readings.ts';
import type { Command } from './commands.ts';
import type { Staged, State } from './staging.ts';
import type { Streams } from './streams.ts';

export interface OpenChambers {
  readonly count: number;
  /** How often other processes' creations had been noticed when the count began. */
  readonly createdElsewhere: number;
}

/** A command that has no response yet. */
export interface PendingCommand {
  readonly command: Command;
  /** The signatureKey of a signed request. */
  readonly signature: string | null;
  /** The streams that it is decided on: its signer's account, then its chamber. */
  readonly streams: readonly StreamId[];
  readonly response: Promise<ForumEvent | null>;
  readonly resolve: (event: ForumEvent | null) => void;
  readonly reject: (error: unknown) => void;
  /** Undefined for the service's own commands. */
  readonly payer: Payer | undefined;
  /** The event of its chamber that its agent had seen. */
  readonly seenEventId: number | undefined;
  /** The event of its chamber that it replies to. */
  readonly replyTo: number | undefined;
  readings: Readings;
  /** How often another process had advanced a stream that it was decided on. */
  conflicts: number;
  /** Whether it was charged to its agent's rate. */
  isCharged: boolean;
}

/** What was read for a command outside of batches. */
export interface Readings {
  /** Its signature was looked up apart from appends, which is done once. */
  readonly isLookedUp: boolean;
  /** Its streams stay in memory until it has its response. */
  readonly isHeld: boolean;
  /** The open chambers of a creation's creator. */
  readonly openChambers: OpenChambers | undefined;
  /** The leaf of the event that its agent had seen; null if there is no such event, undefined before it was read. */
  readonly seenLeaf: Hex | null | undefined;
  /** Whether the chamber has the event that it replies to, and members may reply to it; undefined before it was read. */
  readonly takesReply: boolean | undefined;
  readonly readChain: ReadChain;
}

export const NO_READINGS: Readings = {
  isLookedUp: false,
  isHeld: false,
  openChambers: undefined,
  seenLeaf: undefined,
  takesReply: undefined,
  readChain: NO_ANSWER,
};

/** A decision that the append confirms: an event, a rejection, or no change (`event` is null). */
export interface Outcome {
  readonly pending: PendingCommand;
  readonly event: ForumEvent | null;
  readonly error?: unknown;
}

export class CommitBatch implements AppendBatch {
  readonly outcomes: Outcome[] = [];
  readonly entries: LogEntry[] = [];
  readonly registrations: Registration[] = [];
  /** Signatures of commands without an event: a rejected command may be the retry of an accepted one. */
  readonly signatures: string[] = [];
  /** The heads that decisions without an event rely on, except those that an entry of this batch confirms. */
  readonly heads = new Map<StreamId, number>();
  /** Accepted events by signature: the same request again gets the same event. */
  readonly accepted = new Map<string, ForumEvent | null>();
  /** The states after the staged events; null for a stream without events. */
  readonly states = new Map<StreamId, State | null>();
  /** The heads of `states` before the staged events. */
  readonly headsBefore = new Map<StreamId, number>();
  /** The streams of the entries. */
  readonly touched = new Set<StreamId>();
  /** The highest chamberId after the staged creations; undefined until it is known. */
  lastChamberId: number | undefined;
  /** The batch in flight, while it is being written. */
  before: CommitBatch | undefined;
  /** Never later than that of a state which the batch takes. */
  readonly withheldThrough: number;
  readonly #streams: Streams;

  constructor(streams: Streams, before?: CommitBatch) {
    this.#streams = streams;
    this.before = before;
    this.withheldThrough = Math.min(streams.withheldThrough, before?.withheldThrough ?? Number.POSITIVE_INFINITY);
    this.lastChamberId = before?.lastChamberId;
  }

  /** The event that a request with this signature led to here or in the batch that is being written; undefined if none did. */
  acceptedBy(signature: string): ForumEvent | null | undefined {
    const event = this.accepted.get(signature);
    return event === undefined ? this.before?.accepted.get(signature) : event;
  }

  /** Adds the states that the command is decided on to the batch. Returns false if something must be read first. */
  take({ streams, seenEventId, replyTo, readings }: PendingCommand): boolean {
    for (const stream of streams) {
      if (this.states.has(stream)) continue;
      const staged = this.before?.touched.has(stream) ? this.before.states.get(stream) : undefined;
      const state = staged ?? this.#streams.current(stream);
      if (state === undefined) return false;
      this.states.set(stream, state);
      this.headsBefore.set(stream, state?.state.lastEventId ?? 0);
    }
    const [, chamberId = 0] = streams;
    const chamber = this.states.get(chamberId);
    if (chamber && replyTo !== undefined && readings.takesReply === undefined) return false;
    if (seenEventId === undefined || readings.seenLeaf !== undefined) return true;
    // Most agents have seen the last event, whose leaf is in memory.
    return !chamber || chamber.state.lastEventId === seenEventId;
  }

  stage({ after, event, entry }: Staged<State>): ForumEvent {
    const { stream } = entry;
    this.states.set(stream, after);
    this.touched.add(stream);
    this.heads.delete(stream);
    this.entries.push(entry);
    return event;
  }

  /** A decision without an event is confirmed by the heads that it relies on, and by its signature, which may be in the log. */
  confirm({ signature, streams }: PendingCommand): void {
    if (signature !== null && !this.accepted.has(signature)) this.signatures.push(signature);
    for (const stream of streams) {
      const head = this.headsBefore.get(stream);
      if (head !== undefined && !this.touched.has(stream)) this.heads.set(stream, head);
    }
  }
}

/** Whether the outcome was decided on a stream that had grown, so that its command has to be decided again. */
export function hasMoved({ pending, event }: Outcome, { moved }: AppendResult): boolean {
  // A written event stays, even if the account that it was decided on has grown at the same moment.
  const streams = event === null ? pending.streams : [event.chamberId ?? event.did];
  return streams.some((stream) => stream !== null && moved.has(stream));
}
