// The published tree over all lines of a log: leaves in the order of places, tiles, and one checkpoint. The leaf of the line at place p has
// the index p - 1.
import { HASH_BYTES } from '../crypto/merkle.ts';
import { storedLeaf } from '../crypto/stub.ts';
import { ENTRIES } from '../tlog/tile.ts';
import type { ReadTiles, StoredTile } from '../tlog/tiled-tree.ts';
import { type Damages, matchesChecksum, type StoredNodes } from './damage.ts';
import type { StreamId } from './stream-id.ts';

const ENTRIES_LEVEL = -1;

/** The level in a store's column. */
export function storedLevel({ level }: Pick<StoredTile, 'level'>): number {
  return level === ENTRIES ? ENTRIES_LEVEL : level;
}

export interface StoredLeaf extends StoredNodes {
  /** Null where there are nodes. */
  readonly line: Buffer | null;
  readonly line_crc: number | string | null;
}

/** Throws StreamDamaged, and notes it, if the row fails its checksum. */
export function leafOf(damages: Damages, { stream, eventId }: PlacedEvent, stored: StoredLeaf): Uint8Array {
  const { nodes, nodes_crc, line, line_crc } = stored;
  if (nodes !== null && matchesChecksum(nodes, nodes_crc)) return nodes.subarray(0, HASH_BYTES);
  if (line !== null && matchesChecksum(line, line_crc)) return storedLeaf(line);
  throw damages.note(stream, eventId, `event ${eventId} fails its checksum`);
}

export interface StoredCheckpoint {
  readonly size: number;
  /** The signed note. */
  readonly note: string;
}

/** A log from which another one was made, with its last published checkpoint. */
export interface FormerLog extends StoredCheckpoint {
  readonly logId: string;
}

export interface PlacedEvent {
  readonly stream: StreamId;
  readonly eventId: number;
}

export interface Publication {
  /** The size of the stored checkpoint before it; 0 if there is none. */
  readonly from: number;
  readonly checkpoint: StoredCheckpoint;
  /** The tiles that a tree of `from` leaves does not have. */
  readonly tiles: readonly StoredTile[];
  /** The token of the publisher's lease. */
  readonly lease: string;
}

export interface PublishedTree {
  /** The stored checkpoint of this log, or the last one of a log from which this one was made. */
  checkpoint(logId?: string): Promise<StoredCheckpoint | undefined>;
  /** Runs `work` on a view of the tree at one server: a failover fails it, or repeats it from its beginning. */
  pinned<Result>(work: (tree: PublishedTree) => Promise<Result>): Promise<Result>;
  /**
   * Resolves once the synchronous standbys have everything read before. A checkpoint is visible earlier if its publisher ended while it
   * waited for them.
   */
  confirm(): Promise<void>;
  /** Reads the tiles as of the stored checkpoint. */
  readonly readTiles: ReadTiles;
  /** The leaves of at most `limit` durable lines after the first `after`, joined. Throws StreamDamaged. */
  readLeaves(after: number, limit: number): Promise<Uint8Array>;
  /** The events of these lines. */
  readEvents(after: number, limit: number): Promise<readonly PlacedEvent[]>;
  /**
   * Stores tiles and checkpoint, durably and in one transaction, if the stored checkpoint still has that size and the lease is held.
   * Returns whether it did.
   */
  publish(publication: Publication): Promise<boolean>;
  /** Adds signatures to the note, if it still is the stored one. Returns whether it did. */
  replaceNote(from: StoredCheckpoint, note: string): Promise<boolean>;
}
