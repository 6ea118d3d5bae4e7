// A batch: commands that are decided one after another, each against the state after the previous ones, and written with one append.
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
  /** The number of creations by other processes that had been noticed when the count began. */
  readonly createdElsewhere: number;
}

/** A command that has no response yet. */
export interface PendingCommand {
  readonly command: Command;
  readonly signature: string | null;
  /** The streams that the decision depends on: the signer's account, then the chamber. */
  readonly streams: readonly StreamId[];
  readonly response: Promise<ForumEvent | null>;
  readonly resolve: (event: ForumEvent | null) => void;
  readonly reject: (error: unknown) => void;
  /** Undefined for the service's own commands. */
  readonly payer: Payer | undefined;
  /** The event of the chamber that the agent claims to have seen last. */
  readonly seenEventId: number | undefined;
  /** The event of the chamber that the comment replies to. */
  readonly replyTo: number | undefined;
  readings: Readings;
  /** The number of times that another process advanced a stream between the decision and the append. */
  conflicts: number;
  /** Whether the agent's rate was charged. */
  isCharged: boolean;
}

/** Data that was read for a command before the command entered a batch. */
export interface Readings {
  /** Whether the signature was looked up separately from appends. This happens once. */
  readonly isLookedUp: boolean;
  /** Whether the streams are kept in memory until the command has its response. */
  readonly isPinned: boolean;
  /** The open chambers of the agent, for a creation. */
  readonly openChambers: OpenChambers | undefined;
  /** The leaf of the event that the agent claims to have seen; null if there is no such event, undefined if it has not been read. */
  readonly seenLeaf: Hex | null | undefined;
  /** Whether the comment may reply to the event: it exists and allows replies. Undefined if it has not been read. */
  readonly takesReply: boolean | undefined;
  readonly readChain: ReadChain;
}

export const NO_READINGS: Readings = {
  isLookedUp: false,
  isPinned: false,
  openChambers: undefined,
  seenLeaf: undefined,
  takesReply: undefined,
  readChain: NO_ANSWER,
};

/** A decision that the append must confirm: an event, a rejection, or no change (`event` is null). */
export interface Outcome {
  readonly pending: PendingCommand;
  readonly event: ForumEvent | null;
  readonly error?: unknown;
}

export class CommitBatch implements AppendBatch {
  readonly outcomes: Outcome[] = [];
  readonly entries: LogEntry[] = [];
  readonly registrations: Registration[] = [];
  /** The signatures of commands without an event. A rejected command may be the retry of an accepted one. */
  readonly signatures: string[] = [];
  /** The heads that decisions without an event depend on, except heads that an entry of this batch confirms. */
  readonly heads = new Map<StreamId, number>();
  /** Accepted events by signature, so that a repeated request gets the same event. */
  readonly accepted = new Map<string, ForumEvent | null>();
  /** The states after the staged events; null for a stream without events. */
  readonly states = new Map<StreamId, State | null>();
  /** The heads of `states` before the staged events. */
  readonly headsBefore = new Map<StreamId, number>();
  /** The streams that have entries in the batch. */
  readonly touched = new Set<StreamId>();
  /** The highest chamberId after the staged creations; undefined until it is known. */
  lastChamberId: number | undefined;
  /** The previous batch, while it is being written. */
  before: CommitBatch | undefined;
  /** The last withholding that all states in the batch reflect. */
  readonly withheldThrough: number;
  readonly #streams: Streams;

  constructor(streams: Streams, before?: CommitBatch) {
    this.#streams = streams;
    this.before = before;
    this.withheldThrough = Math.min(streams.withheldThrough, before?.withheldThrough ?? Number.POSITIVE_INFINITY);
    this.lastChamberId = before?.lastChamberId;
  }

  /** The event for this signature, from this batch or the batch being written; undefined if there is none. */
  acceptedBy(signature: string): ForumEvent | null | undefined {
    const event = this.accepted.get(signature);
    return event === undefined ? this.before?.accepted.get(signature) : event;
  }

  /** Adds the states that the decision depends on to the batch. Returns false if something must be read first. */
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
    // Most agents have seen the last event, and its leaf is in memory.
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

  /** Makes the append confirm the heads of a decision without an event, and look up its signature. */
  confirm({ signature, streams }: PendingCommand): void {
    if (signature !== null && !this.accepted.has(signature)) this.signatures.push(signature);
    for (const stream of streams) {
      const head = this.headsBefore.get(stream);
      if (head !== undefined && !this.touched.has(stream)) this.heads.set(stream, head);
    }
  }
}

/** Whether a stream had grown before the append, so that the command must be decided again. */
export function hasConflict({ pending, event }: Outcome, { conflicts }: AppendResult): boolean {
  // A written event is final, even if the account that the decision read grew at the same time.
  const streams = event === null ? pending.streams : [event.chamberId ?? event.did];
  return streams.some((stream) => stream !== null && conflicts.has(stream));
}
