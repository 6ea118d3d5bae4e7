// The port of the log: what the forum and its readers need of a store. It knows nothing of how an adapter stores it.
import type { ChamberListing, Listing } from '../../projections/listings.ts';
import type { Membership } from '../../projections/todo.ts';
import type { AgentRecord, IdeaView } from '../../projections/views.ts';
import type { NodeRef } from '../crypto/merkle.ts';
import type { ForumError } from '../vocabulary/errors.ts';
import type { Millis, Phase } from '../vocabulary/values.ts';

/** A stream of events: a chamber's by its id, an agent's account by its DID. */
export type StreamId = number | string;

/** Where growth is reported or followed: all chambers together. No chamber has this id. */
export const ALL_CHAMBERS = 0;

export interface LogEntry {
  readonly stream: StreamId;
  /** One more than the stream's last. */
  readonly eventId: number;
  readonly at: Millis;
  /** The canonical line in UTF-8, without a line break. */
  readonly line: Uint8Array;
  /** The request's signatureKey, unique in the log; null for registrations, unsigned requests and events of the service. */
  readonly signature: string | null;
  /** 32 bytes each: the leaf hash, then every parent in the Merkle tree that it completes; null outside the tree. */
  readonly nodes: Uint8Array | null;
  /** Rows of the derived tables, written in the same transaction. */
  readonly listings: readonly Listing[];
  /** Of the stream after this event; written in the same transaction. */
  readonly snapshot?: Snapshot | undefined;
  /** The token of the hold under which it was decided: once that has ended, its stream is in conflict. */
  readonly lease?: string | undefined;
  /** The signer's account as the decision read it: in a shared log its stream is in conflict once the account has grown. */
  readonly account?: { readonly did: string; readonly lastEventId: number } | undefined;
}

/** What a registration leaves outside the log, written in the transaction of its line, if it has one. */
export interface Registration {
  readonly did: string;
  /** The registration, in the agent's account, that a retry is answered with. */
  readonly eventId: number;
  /** Its hiddenSignatureKey; null for an unsigned one. */
  readonly signature: string | null;
  /** Personal data. */
  readonly operatorEmail: string | undefined;
}

/** The store no longer holds what was written: the process must stop. */
export class LogCorruption extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LogCorruption';
  }
}

/** A stream's stored bytes are not the written ones: its reads fail, the process and the other streams continue. */
export class StreamDamaged extends Error {
  readonly stream: StreamId;
  /** Null if no single event is damaged. */
  readonly eventId: number | null;

  constructor(stream: StreamId, eventId: number | null, problem: string) {
    super(`${typeof stream === 'number' ? 'chamber' : 'account'} ${stream} is damaged: ${problem}`);
    this.name = 'StreamDamaged';
    this.stream = stream;
    this.eventId = eventId;
  }
}

/** The folded state of a stream after an event. */
export interface Snapshot {
  readonly eventId: number;
  /** Leaf hash of that event. */
  readonly leaf: Uint8Array;
  /** projections/snapshot.ts has its form. */
  readonly state: string;
}

/** Consecutive lines of a stream, each ended by a line break. */
export interface Page {
  readonly ndjson: Buffer;
  readonly count: number;
}

/** Lines of all chambers. Their order has places, which rise and may have gaps; each chamber's lines are in its order. */
export interface OrderedPage extends Page {
  /** The place up to which the page was read. It is the cursor itself at the end of the order. */
  readonly last: number;
}

export interface GraduatedQuery {
  readonly limit: number;
  readonly after?: Pick<IdeaView, 'graduatedAt' | 'chamberId' | 'slot'> | undefined;
}

export interface ChamberListQuery {
  readonly phase: Phase | undefined;
  /** Only chambers with a smaller id. */
  readonly before: number | undefined;
  readonly limit: number;
  readonly now: Millis;
}

/** What commands need of the log to be decided, read at one moment. */
export interface LookUp {
  /** Of the streams asked for; 0 for one without events. */
  readonly lastEventIds: ReadonlyMap<StreamId, number>;
  /** The highest chamberId in use, 0 in an empty log. */
  readonly lastChamberId: number;
  /** The lines that hold the signatures asked for, by signatureKey. */
  readonly found: ReadonlyMap<string, string | StreamDamaged>;
}

/** What one process at a time may do, on a shared log. A hold may end at any moment, which only an append notices for certain. */
export interface Lease {
  /** Of this hold alone; undefined while the process does not hold it. */
  readonly token: string | undefined;
  /** Ends the hold, and waits for no further one. */
  release(): Promise<void>;
}

/** A process among those that share a log, as its metrics show it. */
export interface NodeState {
  readonly isListening: boolean;
  /** Connections for wake-ups that were lost and replaced. */
  readonly reconnects: number;
  readonly connectionsInUse: number;
  /** Reads and writes that wait for a connection. */
  readonly connectionsAwaited: number;
}

export interface Follower {
  readonly followed: () => Iterable<StreamId>;
  readonly wake: (stream: StreamId) => void;
}

/** A place among the members of a chamber. */
export type Seat = readonly [chamberId: number, turnOrder: number | null];

export interface ForumLog {
  /** Random, made with the store: 32 lower-case hex digits. */
  readonly logId: string;
  /** The later of the newest event's `ts`, over all streams, and the persisted clock; 0 in an empty log. */
  readonly lastAt: Millis;
  /** The error of the latest append or persistClock; undefined if it succeeded. */
  readonly writeFailure: ForumError | undefined;
  /** Streams in which damage was met since the start. */
  readonly damagedStreams: number;
  /** Whether other processes append to it too: a state in memory may then be behind its stream. */
  readonly isShared: boolean;

  /**
   * Writes the entries in one transaction, durable when the promise resolves, but for the streams that it returns: their
   * entries do not follow the stream's last event, their account or lease has changed, or, in a shared log, a signature of theirs
   * is in the log; nothing of them was written. Throws FORUM_ERR_UNAVAILABLE with nothing written, or, in a shared log that went
   * silent, with all or nothing written.
   */
  append(entries: readonly LogEntry[], registrations?: readonly Registration[]): Promise<ReadonlySet<StreamId>>;
  /**
   * `wake` is called when another process has appended to a followed stream, or to any chamber if ALL_CHAMBERS is followed: soon
   * after, and sometimes for nothing.
   */
  onGrowth(follower: Follower): void;
  /** Signature keys: each a signatureKey, or the hiddenSignatureKey of a registration. */
  lookUp(streams: readonly StreamId[], signatureKeys: readonly string[]): Promise<LookUp>;
  /**
   * The lines from event `after` + 1 on: at most `limit`, and none after the line that reaches PAGE_BYTES. Each is as it was
   * written, or the read throws StreamDamaged; so do the other reads of a stream.
   */
  readPage(stream: StreamId, after: number, limit: number): Promise<Page>;
  lastEventId(stream: StreamId): Promise<number>;
  /** The lines of all chambers after the place, bounded as in readPage. A page without lines may lead on to a later place. */
  readAll(after: number, limit: number): Promise<OrderedPage>;
  /** The end of the order of all chambers. */
  lastPlace(): Promise<number>;
  /** The place of a chamber's event in that order; undefined for an event that has none. */
  placeOf(chamberId: number, eventId: number): Promise<number | undefined>;
  /** The damage that was met in the stream since the start. */
  damageOf(stream: StreamId): StreamDamaged | undefined;
  /** Notes damage that a reader of the lines met, and returns it. */
  noteDamage(damage: StreamDamaged): StreamDamaged;
  /** The latest snapshot of a stream that is whole and of this version. */
  readSnapshot(stream: StreamId): Promise<Snapshot | undefined>;
  writeSnapshot(stream: StreamId, snapshot: Snapshot): Promise<void>;
  dropSnapshot(stream: StreamId): Promise<void>;
  readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]>;
  operatorEmail(did: string): Promise<string | undefined>;

  /** Newest first. */
  listChambers(query: ChamberListQuery): Promise<readonly ChamberListing[]>;
  /** Ideas with a token, newest graduation first, from the one after `after` on. */
  listGraduatedIdeas(query: GraduatedQuery): Promise<readonly IdeaView[]>;
  /** The idea with the ticker, case-insensitive: a graduated one before others, then the newest. */
  findIdea(ticker: string, chamberId: number | undefined): Promise<IdeaView | undefined>;
  /** Chambers past their reveal deadline that are not settled, oldest deadline first. */
  listUnsettled(now: Millis, limit: number): Promise<readonly number[]>;
  /** Settled chambers, latest reveal deadline first. */
  listSettled(limit: number): Promise<readonly number[]>;
  /** The agent's chambers that are not committed, newest first. */
  listMemberships(did: string, limit: number): Promise<readonly Membership[]>;
  /** The chambers that the agent joined, newest first. */
  listChambersOf(did: string, query: Pick<ChamberListQuery, 'before' | 'limit'>): Promise<readonly ChamberListing[]>;
  /** The members' DIDs; null where the chamber has no such turn order. */
  listMembersAt(seats: readonly Seat[]): Promise<readonly (string | null)[]>;
  agentRecord(did: string): Promise<AgentRecord>;
  /** The creator's chambers that are not committed, counted up to `max`. */
  countOpenChambers(creatorDid: string, max: number): Promise<number>;

  /** From now on this process tries to hold it, and takes it when another one ends or freezes. One name is asked for once. */
  lease(name: string): Lease;
  /** Undefined in a log of one process. */
  nodeState(): NodeState | undefined;

  /** A fact about the environment that is kept with the log, e.g. its chain. */
  recall(name: string): Promise<string | undefined>;
  /** Keeps the first value: a later one changes nothing. */
  remember(name: string, value: string): Promise<void>;
  /** Persists the clock's reading, so that it is not earlier after a restart, and moves derived rows on to it bit by bit. */
  persistClock(at: Millis): Promise<void>;

  close(): Promise<void>;
}
