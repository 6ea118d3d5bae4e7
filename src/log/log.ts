// The event log, a set of append-only streams: the port of the forum and of all readers. It knows nothing about databases.
import type { Listing } from '../../projections/listings.ts';
import type { NodeRef } from '../crypto/merkle.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { DamagedStreams, StreamDamaged } from './damage.ts';
import type { ReadQueue } from './read-queue.ts';
import type { StreamId } from './stream-id.ts';

/**
 * The pseudo-stream of all chambers. Followers watch it for events in any chamber. No chamber has this id. Its head is the highest
 * chamberId in use, so a creation, like any other event, is appended after a head.
 */
export const ALL_CHAMBERS = 0;

export interface LogEntry {
  readonly stream: StreamId;
  /** The stream's last event id plus 1. */
  readonly eventId: number;
  readonly at: Millis;
  /** The canonical line in UTF-8, without a line break. */
  readonly line: Uint8Array;
  /** The request's signatureKey, unique in the log; null for registrations, unsigned requests and service events. */
  readonly signature: string | null;
  /** 32 bytes each: the leaf hash, then every Merkle tree parent that the leaf completes; null outside the tree. */
  readonly nodes: Uint8Array | null;
  /** Rows of the derived tables, written in the same transaction. */
  readonly listings: readonly Listing[];
  /** The state of the stream after this event, written in the same transaction. */
  readonly snapshot?: Snapshot | undefined;
  /** The token of the lease under which the entry was decided. The entry is written only while that lease is held. */
  readonly lease?: string | undefined;
  /** The head of the signer's account when the entry was decided. The entry is written only if the head is unchanged. */
  readonly account?: { readonly did: string; readonly lastEventId: number } | undefined;
}

export function isCreation(entry: LogEntry): entry is LogEntry & { readonly stream: number } {
  return typeof entry.stream === 'number' && entry.eventId === 1;
}

/** Registration data outside the log, written in the same transaction as the registration's line, if there is one. */
export interface Registration {
  readonly did: string;
  /** The event in the agent's account that a retry returns. */
  readonly eventId: number;
  /** The request's hiddenSignatureKey; null for an unsigned request. */
  readonly signature: string | null;
  /** Personal data. */
  readonly operatorEmail: string | undefined;
  /** A registration without a line is written only if this is still the account's head. */
  readonly unchangedAt?: number | undefined;
}

/** One append, which is checked and written atomically. */
export interface AppendBatch {
  /** Ordered within each stream. A created chamber's id is the highest chamberId plus 1. */
  readonly entries: readonly LogEntry[];
  readonly registrations?: readonly Registration[] | undefined;
  /** The heads of streams that decisions read but did not extend; 0 for a stream without events. */
  readonly heads?: ReadonlyMap<StreamId, number> | undefined;
  /** Signature keys to look up, in addition to those of entries and registrations. */
  readonly signatures?: readonly string[] | undefined;
  /**
   * The last withholding (withholding.ts) that is reflected in the states that the decisions used. If the log has a later one, the rows may
   * hold withheld text, so nothing is written and all streams of the batch are conflicts. Undefined if no state was read.
   */
  readonly withheldThrough?: number | undefined;
}

export interface AppendResult {
  /**
   * The streams that could not be extended, or whose head differs from the batch's, with their current heads. The append wrote no entry or
   * registration of these streams, but it wrote all others. A log with a single writer reports only streams whose entries repeat a
   * signature.
   */
  readonly conflicts: ReadonlyMap<StreamId, number>;
  /** The stored lines that already have a signature of the batch, by signature key. */
  readonly found: ReadonlyMap<string, string | StreamDamaged>;
}

/** The folded state of a stream after an event. */
export interface Snapshot {
  readonly eventId: number;
  readonly leaf: Uint8Array;
  /** Encoded by projections/snapshot.ts. */
  readonly state: string;
}

/** Consecutive lines of a stream, each terminated by a line break. */
export interface Page {
  readonly ndjson: Buffer;
  readonly count: number;
}

/**
 * Lines of all chambers. Every line of the log, including account lines, has a place, its global sequence number: 1, 2, 3 …. Within a
 * stream, places increase with event ids. This page skips account lines.
 */
export interface OrderedPage extends Page {
  /** The place up to which the page was read; the cursor itself if there are no more lines. */
  readonly last: number;
}

export interface EventLog {
  /** 32 random lower-case hex digits, created with the store. */
  readonly logId: string;
  /** The streams with damaged lines. Reads of a damaged line throw StreamDamaged. */
  readonly damagedStreams: DamagedStreams;
  /** Readers of this log wait here, so that none of them blocks the process. */
  readonly readQueue: ReadQueue;

  /**
   * Writes the batch in one transaction. When the promise resolves, the batch and everything that the result reports are durable. Throws
   * FORUM_ERR_UNAVAILABLE if nothing was written, or, with `mayBeAccepted`, if a database server stopped responding: then all or nothing was
   * written.
   */
  append(batch: AppendBatch): Promise<AppendResult>;
  /** Whether the log probably contains the signature. A wrong result costs only time. */
  mayContain(signatureKey: string): boolean;
  /** Finds the lines of the signatures, by signature key. They are durable when the promise resolves. Does not delay appends. */
  find(signatureKeys: readonly string[]): Promise<AppendResult['found']>;
  /** Returns 0 for a stream without events. */
  lastEventId(stream: StreamId): Promise<number>;
  /** Reads at most `limit` lines after event `after`, and none after the line that reaches PAGE_BYTES. */
  readPage(stream: StreamId, after: number, limit: number): Promise<Page>;
  /** Reads lines of all chambers after the place `after`, bounded as in readPage. A page without lines may still end at a later place. */
  readAll(after: number, limit: number): Promise<OrderedPage>;
  /** The highest place of any line. */
  lastPlace(): Promise<number>;
  /** Returns undefined for an event that is not in the log. */
  placeOf(stream: StreamId, eventId: number): Promise<number | undefined>;
  readNodes(chamberId: number, refs: readonly NodeRef[]): Promise<readonly Uint8Array[]>;
  /** Returns the latest snapshot of a stream, if it is undamaged and of the current version. */
  readSnapshot(stream: StreamId): Promise<Snapshot | undefined>;
  /** Writes nothing if the log has a withholding later than `withheldThrough`, the last one that the state reflects. */
  writeSnapshot(stream: StreamId, snapshot: Snapshot, withheldThrough: number): Promise<void>;
  dropSnapshot(stream: StreamId): Promise<void>;
}
