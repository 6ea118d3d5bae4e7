// The tree over all lines of a log as it is published: leaves in the order of places, tiles, and one checkpoint. The leaf of the line at
// place p has the index p - 1.
import type { ReadTiles, StoredTile } from '../tlog/tiled-tree.ts';
import type { StreamId } from './stream-id.ts';

/** Of a level of tiles, entries included, as it is stored. */
export const ENTRIES_LEVEL = -1;

export interface StoredCheckpoint {
  readonly size: number;
  /** The signed note. */
  readonly note: string;
}

/** A log that another one is made from, with the last checkpoint that was published of it. */
export interface FormerLog extends StoredCheckpoint {
  readonly logId: string;
}

export interface PlacedEvent {
  readonly stream: StreamId;
  readonly eventId: number;
}

export interface Publication {
  /** The size of the stored checkpoint that it follows; 0 if there is none. */
  readonly from: number;
  readonly checkpoint: StoredCheckpoint;
  /** Those that a tree of `from` leaves does not have. */
  readonly tiles: readonly StoredTile[];
  /** The token of the publisher's lease. */
  readonly lease: string;
}

export interface PublishedTree {
  /** The stored checkpoint of this log, or the last one of a log that this one was made from. */
  checkpoint(logId?: string): Promise<StoredCheckpoint | undefined>;
  /** As of the stored checkpoint. */
  readonly readTiles: ReadTiles;
  /** The leaves of the lines after the first `after` that are on disk, joined: at most `limit`. Throws StreamDamaged. */
  readLeaves(after: number, limit: number): Promise<Uint8Array>;
  /** Which events these are. */
  readEvents(after: number, limit: number): Promise<readonly PlacedEvent[]>;
  /**
   * Stores tiles and checkpoint, durably and in one transaction, if the stored checkpoint still is of that size and the lease is held.
   * Returns whether it did.
   */
  publish(publication: Publication): Promise<boolean>;
  /** Adds signatures to the note, if it still is the stored one. Returns whether it did. */
  replaceNote(from: StoredCheckpoint, note: string): Promise<boolean>;
}
