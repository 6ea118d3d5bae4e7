// The published tree over all lines of a log: leaves ordered by place, tiles, and one checkpoint. The leaf of the line at place p has the
// index p - 1.
import { HASH_BYTES } from '../crypto/merkle.ts';
import { storedLeaf } from '../crypto/stub.ts';
import { ENTRIES } from '../tlog/tile.ts';
import type { ReadTiles, StoredTile } from '../tlog/tiled-tree.ts';
import { type DamagedStreams, matchesChecksum, type StoredNodes } from './damage.ts';
import type { StreamId } from './stream-id.ts';

const ENTRIES_LEVEL = -1;

/** The value of a store's `level` column. */
export function storedLevel({ level }: Pick<StoredTile, 'level'>): number {
  return level === ENTRIES ? ENTRIES_LEVEL : level;
}

export interface StoredLeaf extends StoredNodes {
  /** Null if the event has nodes. */
  readonly line: Buffer | null;
  readonly line_crc: number | string | null;
}

/** Records and throws StreamDamaged if the row fails its checksum. */
export function leafOf(
  damagedStreams: DamagedStreams,
  { stream, eventId }: PlacedEvent,
  stored: StoredLeaf,
): Uint8Array {
  const { nodes, nodes_crc, line, line_crc } = stored;
  if (nodes !== null && matchesChecksum(nodes, nodes_crc)) return nodes.subarray(0, HASH_BYTES);
  if (line !== null && matchesChecksum(line, line_crc)) return storedLeaf(line);
  throw damagedStreams.record(stream, eventId, `event ${eventId} fails its checksum`);
}

export interface StoredCheckpoint {
  readonly size: number;
  readonly note: string;
}

/** A log that was continued under another logId, with its last published checkpoint. */
export interface FormerLog extends StoredCheckpoint {
  readonly logId: string;
}

export interface PlacedEvent {
  readonly stream: StreamId;
  readonly eventId: number;
}

export interface Publication {
  /** The size of the previous stored checkpoint; 0 if there is none. */
  readonly from: number;
  readonly checkpoint: StoredCheckpoint;
  /** The tiles that a tree of `from` leaves lacks. */
  readonly tiles: readonly StoredTile[];
  /** The token of the publisher's lease. */
  readonly lease: string;
}

export interface PublishedTree {
  /** Returns the stored checkpoint of this log, or the last one of the log that it continues. */
  checkpoint(logId?: string): Promise<StoredCheckpoint | undefined>;
  /** Runs `work` on the tree of one server. After a failover, `work` fails or restarts from the beginning. */
  onOneServer<Result>(work: (tree: PublishedTree) => Promise<Result>): Promise<Result>;
  /**
   * Resolves once the synchronous standbys have everything that was read before. A checkpoint is visible earlier if its publisher died
   * while waiting for them.
   */
  confirm(): Promise<void>;
  /** Reads the tiles as of the stored checkpoint. */
  readonly readTiles: ReadTiles;
  /** Returns the concatenated leaves of at most `limit` durable lines after the place `after`. Throws StreamDamaged. */
  readLeaves(after: number, limit: number): Promise<Uint8Array>;
  /** Returns the events of the same lines. */
  readEvents(after: number, limit: number): Promise<readonly PlacedEvent[]>;
  /**
   * Stores tiles and checkpoint durably, in one transaction, if the stored checkpoint still has the size `from` and the lease is held.
   * Returns whether they were stored.
   */
  publish(publication: Publication): Promise<boolean>;
  /** Replaces the stored note by one with more signatures, if `from` is still stored. Returns whether it was replaced. */
  replaceNote(from: StoredCheckpoint, note: string): Promise<boolean>;
}
