// The event log: streams of lines that only grow. What the forum and the readers of lines need of a store; nothing of how an adapter
// stores them.
import type { Listing } from '../../projections/listings.ts';
import type { NodeRef } from '../crypto/merkle.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { Damages, StreamDamaged } from './damage.ts';
import type { ReadTurns } from './read-turns.ts';
import type { StreamId } from './stream-id.ts';

/**
 * All chambers together: where their growth is reported and followed. No chamber has this id. Its head is the highest chamberId in
 * use, so that a creation is appended after a head as any event is.
 */
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
  /** The state of the stream after this event, written in the same transaction. */
  readonly snapshot?: Snapshot | undefined;
  /** The token of the lease under which it was decided: it is written only while that lease is held. */
  readonly lease?: string | undefined;
  /** The signer's account as the decision read it: the event is written only while that is the account's head. */
  readonly account?: { readonly did: string; readonly lastEventId: number } | undefined;
}

/** What a registration leaves outside the log, written in the transaction of its line, if it has one. */
export interface Registration {
  readonly did: string;
  /** The registration, in the agent's account, that a retry returns. */
  readonly eventId: number;
  /** Its hiddenSignatureKey; null for an unsigned one. */
  readonly signature: string | null;
  /** Personal data. */
  readonly operatorEmail: string | undefined;
  /** A registration without a line names the account's head that it was decided on, and is written only while that is the head. */
  readonly unchangedAt?: number | undefined;
}

/** What one append writes and checks, at one moment. */
export interface AppendBatch {
  /** Each stream's in its order; a created chamber's id is one more than the highest. */
  readonly entries: readonly LogEntry[];
  readonly registrations?: readonly Registration[] | undefined;
  /** The heads of streams of which decisions were made that write nothing there; 0 for a stream without events. */
  readonly heads?: ReadonlyMap<StreamId, number> | undefined;
  /** Signature keys to look up. Those of entries and registrations are looked up in any case. */
  readonly signatures?: readonly string[] | undefined;
}

export interface AppendResult {
  /**
   * The streams that could not be extended or do not have the head that the batch has for them, with their heads. Nothing was written of
   * the entries and registrations of these streams, and everything of the others. A log that one process alone appends to reports
   * only streams whose entries repeat a signature.
   */
  readonly moved: ReadonlyMap<StreamId, number>;
  /** The lines that signatures of the batch led to earlier, by signature key. */
  readonly found: ReadonlyMap<string, string | StreamDamaged>;
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

/**
 * Lines of all chambers. Each line of the log has a place in one order, 1, 2, 3 …, those of accounts too, which are skipped here. Each
 * stream's lines are in its order.
 */
export interface OrderedPage extends Page {
  /** The place up to which the page was read. It is the cursor itself at the end of the order. */
  readonly last: number;
}

export interface EventLog {
  /** Random, made with the store: 32 lower-case hex digits. */
  readonly logId: string;
  /** Streams in which damage was met since the start. Reads of a damaged line throw StreamDamaged. */
  readonly damages: Damages;
  /** Which readers of this log take, so that none of them blocks the process. */
  readonly turns: ReadTurns;

  /**
   * Writes the batch in one transaction. When the promise resolves, it is durable, and so is all that the result reports. Throws FORUM_ERR_UNAVAILABLE with nothing written or, in a
   * log on a server that went silent, with all or nothing written.
   */
  append(batch: AppendBatch): Promise<AppendResult>;
  /** Whether the log probably holds the signature. A wrong guess costs time, nothing else. */
  mayHold(signatureKey: string): boolean;
  /** The lines that the signatures led to, by signature key, durable when the promise resolves; delays no append. */
  find(signatureKeys: readonly string[]): Promise<AppendResult['found']>;
  /** 0 for a stream without events. */
  lastEventId(stream: StreamId): Promise<number>;
  /** The lines from event `after` + 1 on: at most `limit`, and none after the line that reaches PAGE_BYTES. */
  readPage(stream: StreamId, after: number, limit: number): Promise<Page>;
  /** The lines of all chambers after the place, bounded as in readPage. A page without lines may lead on to a later place. */
  readAll(after: number, limit: number): Promise<OrderedPage>;
  /** The end of the order of all lines. */
  lastPlace(): Promise<number>;
  /** The place of an event in that order; undefined for one that is not in the log. */
  placeOf(stream: StreamId, eventId: number): Promise<number | undefined>;
  readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]>;
  /** The latest snapshot of a stream that is whole and of this version. */
  readSnapshot(stream: StreamId): Promise<Snapshot | undefined>;
  writeSnapshot(stream: StreamId, snapshot: Snapshot): Promise<void>;
  dropSnapshot(stream: StreamId): Promise<void>;
}
