// A batch: commands that are decided one after another, each on the effects of those before it, and written by one append.
import type { AppendBatch, AppendResult, LogEntry, Registration } from '../log/log.ts';
import type { StreamId } from '../log/stream-id.ts';
import type { ReadChain } from '../moves/chain-question.ts';
import type { SeenEvent } from '../moves/move.ts';
import type { Payer } from '../process/main-thread.ts';
import type { ForumEvent } from '../vocabulary/events.ts';
import type { Hex } from '../vocabulary/values.ts';
import type { Command } from './commands.ts';
import type { Staged, State } from './staging.ts';
import type { Streams } from './streams.ts';

export interface OpenChambers {
  readonly count: number;
  /** How often other processes were known, when the count began, to have created a chamber. */
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
  /** Its signature was looked up apart from an append, or is being so: that is done once. */
  isLookedUp: boolean;
  /** Its streams stay in memory until it has its response. */
  isHeld: boolean;
  /** The open chambers of a creation's creator, once they were counted. */
  openChambers: OpenChambers | undefined;
  /** Whom its work counts for; undefined for the service's own. */
  readonly payer: Payer | undefined;
  /** The event of its chamber that its agent had seen. */
  readonly seen: SeenEvent | undefined;
  /** The leaf that the log has for that event, null for none; undefined before it was read. */
  seenLeaf: Hex | null | undefined;
  /** The event of its chamber that it replies to. */
  readonly replyTo: number | undefined;
  /** Whether the chamber has that event and members may reply to it; undefined before it was read. */
  takesReply: boolean | undefined;
  /** Gives what the chain answered for it; throws NeedsChain for what it was not asked. */
  readChain: ReadChain;
  /** How often it was decided on a head that another process had passed. */
  conflicts: number;
  /** It has taken from its agent's rate. */
  isCounted: boolean;
}

/** What the append confirms: an event, a rejection, or no change (`event` is null). */
export interface Outcome {
  readonly pending: PendingCommand;
  readonly event: ForumEvent | null;
  readonly error?: unknown;
}

export class CommitBatch implements AppendBatch {
  readonly outcomes: Outcome[] = [];
  readonly entries: LogEntry[] = [];
  readonly registrations: Registration[] = [];
  /** Signatures of commands without an event: a rejected one may be the retry of one that was accepted. */
  readonly signatures: string[] = [];
  /** The heads of streams that decisions without an event stand on, where no entry of this batch confirms them. */
  readonly heads = new Map<StreamId, number>();
  /** What was accepted in this batch, by signature: the same request again gets the same event. */
  readonly accepted = new Map<string, ForumEvent | null>();
  /** The states after the staged events; null for a stream without events. All decisions of the batch start from one head of a stream. */
  readonly states = new Map<StreamId, State | null>();
  /** The heads of `states` before the staged events. */
  readonly headsBefore = new Map<StreamId, number>();
  /** The streams of the entries. */
  readonly touched = new Set<StreamId>();
  /** The highest chamberId after the staged creations; undefined before the first one is known. */
  lastChamberId: number | undefined;
  /** The batch that is being written, while it is. */
  before: CommitBatch | undefined;
  readonly #streams: Streams;

  constructor(streams: Streams, before?: CommitBatch) {
    this.#streams = streams;
    this.before = before;
    this.lastChamberId = before?.lastChamberId;
  }

  /** Takes the states that the command is decided on into the batch. Returns false if something has to be read first. */
  take({ streams, seen, seenLeaf, replyTo, takesReply }: PendingCommand): boolean {
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
    if (chamber && replyTo !== undefined && takesReply === undefined) return false;
    if (seen === undefined || seenLeaf !== undefined) return true;
    // Most agents have seen the last event, whose leaf is in memory.
    return !chamber || chamber.state.lastEventId === seen.eventId;
  }

  /** Adds an event, and returns it. */
  stage({ after, event, entry }: Staged<State>): ForumEvent {
    const { stream } = entry;
    this.states.set(stream, after);
    this.touched.add(stream);
    this.heads.delete(stream);
    this.entries.push(entry);
    return event;
  }

  /** What was decided without an event is confirmed by the heads that it stands on, and by its signature, which may be in the log. */
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
