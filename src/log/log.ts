// The event log, streams of lines that only grow: the port of the forum and of all readers of lines. It knows nothing of databases.
import type { Listing } from '../../projections/listings.ts';
import type { NodeRef } from '../crypto/merkle.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { Damages, StreamDamaged } from './damage.ts';
import type { ReadQueue } from './read-queue.ts';
import type { StreamId } from './stream-id.ts';

/**
 * The stream of all chambers, by which followers learn of their growth. No chamber has this id. Its head is the highest chamberId in use,
 * so that a creation, like any event, is appended after a head.
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
  /** The token of the lease under which the entry was decided: it is written only while that lease is held. */
  readonly lease?: string | undefined;
  /** The signer's account as the decision read it: the entry is written only if that is still the account's head. */
  readonly account?: { readonly did: string; readonly lastEventId: number } | undefined;
}

/** The data of a registration outside the log, written in the transaction of its line, if it has one. */
export interface Registration {
  readonly did: string;
  /** The registration, in the agent's account, that a retry returns. */
  readonly eventId: number;
  /** Its hiddenSignatureKey; null for an unsigned one. */
  readonly signature: string | null;
  /** Personal data. */
  readonly operatorEmail: string | undefined;
  /** A registration without a line names the account's head that it was decided on, and is written only if that is still the head. */
  readonly unchangedAt?: number | undefined;
}

/** One append, which writes and checks everything at one moment. */
export interface AppendBatch {
  /** In the order of each stream; a created chamber's id is one more than the highest. */
  readonly entries: readonly LogEntry[];
  readonly registrations?: readonly Registration[] | undefined;
  /** The heads of streams that decisions have read and not extended; 0 for a stream without events. */
  readonly heads?: ReadonlyMap<StreamId, number> | undefined;
  /** Signature keys to look up, besides those of entries and registrations. */
  readonly signatures?: readonly string[] | undefined;
  /**
   * The withholding (withholding.ts) up to which the states are complete that entries were decided on: if the log has a later one, their
   * rows may hold a withheld text. Then nothing is written, and all streams of the batch count as conflicts. Undefined if no state was read.
   */
  readonly withheldThrough?: number | undefined;
}

export interface AppendResult {
  /**
   * The streams that could not be extended, or whose head is not that of the batch, with their heads. The append wrote no entry or
   * registration of these streams, and all of the others. A log with a single writer reports only streams whose entries repeat a signature.
   */
  readonly conflicts: ReadonlyMap<StreamId, number>;
  /** The earlier lines of signatures of the batch, by signature key. */
  readonly found: ReadonlyMap<string, string | StreamDamaged>;
}

/** The folded state of a stream after an event. */
export interface Snapshot {
  readonly eventId: number;
  /** Leaf hash of that event. */
  readonly leaf: Uint8Array;
  /** Encoded by projections/snapshot.ts. */
  readonly state: string;
}

/** Consecutive lines of a stream, each ended by a line break. */
export interface Page {
  readonly ndjson: Buffer;
  readonly count: number;
}

/**
 * Lines of all chambers. Each line of the log, also of an account, has a place in one order, 1, 2, 3 …; within a stream places rise with
 * event ids. This page skips the lines of accounts.
 */
export interface OrderedPage extends Page {
  /** The place up to which the page was read; at the end of the order, the cursor itself. */
  readonly last: number;
}

export interface EventLog {
  /** 32 random lower-case hex digits, created with the store. */
  readonly logId: string;
  /** Reads of a damaged line throw StreamDamaged. */
  readonly damages: Damages;
  /** The readers of this log wait here, so that none of them blocks the process. */
  readonly readQueue: ReadQueue;

  /**
   * Writes the batch in one transaction. When the promise resolves, the batch and everything that the result reports are durable. Throws
   * FORUM_ERR_UNAVAILABLE with nothing written or, if a database server went silent, with all or nothing written.
   */
  append(batch: AppendBatch): Promise<AppendResult>;
  /** Whether the log probably has the signature. A wrong guess costs only time. */
  mayHold(signatureKey: string): boolean;
  /** The lines of the signatures, by signature key, durable when the promise resolves; delays no append. */
  find(signatureKeys: readonly string[]): Promise<AppendResult['found']>;
  /** 0 for a stream without events. */
  lastEventId(stream: StreamId): Promise<number>;
  /** The lines after event `after`: at most `limit`, and none after the line that reaches PAGE_BYTES. */
  readPage(stream: StreamId, after: number, limit: number): Promise<Page>;
  /** The lines of all chambers after the place, bounded as in readPage. A page without lines may still end at a later place. */
  readAll(after: number, limit: number): Promise<OrderedPage>;
  /** The end of the order of all lines. */
  lastPlace(): Promise<number>;
  /** Undefined for an event that is not in the log. */
  placeOf(stream: StreamId, eventId: number): Promise<number | undefined>;
  readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]>;
  /** The latest snapshot of a stream, if it is undamaged and of this version. */
  readSnapshot(stream: StreamId): Promise<Snapshot | undefined>;
  /** Writes nothing if the log has a withholding after this one, up to which the folded lines were complete. */
  writeSnapshot(stream: StreamId, snapshot: Snapshot, withheldThrough: number): Promise<void>;
  dropSnapshot(stream: StreamId): Promise<void>;
}
