// Recomputes the published tree from the lines; `fsck` compares it with the stored tiles, `rebuild` replaces them. Tiles follow from the
// lines, but checkpoints are signed and others have copies: if the lines have another root than the stored checkpoint, they were changed after
// it was published, and no repair of this database can make both true.
import { HASH_BYTES, leafHash } from '../crypto/merkle.ts';
import { parseCheckpoint } from '../tlog/checkpoint.ts';
import { parseNote } from '../tlog/note.ts';
import { ENTRIES, TILE_WIDTH } from '../tlog/tile.ts';
import { GrowingTree, type StoredTile } from '../tlog/tiled-tree.ts';
import { TREE } from '../tlog/tree.ts';
import type { StoredCheckpoint } from './published-tree.ts';

const NOT_THE_PUBLISHED = 'restore a backup, or continue as another log: chambers new-log';

export interface TreeFault {
  /** The first line that differs from the published one; null for a fault in no line. */
  readonly place: number | null;
  readonly problem: string;
}

export class TreeCheck {
  readonly #checkpoint: StoredCheckpoint | undefined;
  readonly #tree = new GrowingTree(0, [], TREE);
  #tiles = 0;
  #areTilesRight = true;
  #changedPlace: number | null = null;

  constructor(checkpoint: StoredCheckpoint | undefined) {
    this.#checkpoint = checkpoint;
  }

  /** The number of lines to add, in the order of their places. */
  get size(): number {
    return this.#checkpoint?.size ?? 0;
  }

  /** Returns the tiles that this line completes. */
  add(line: Uint8Array): readonly StoredTile[] {
    this.#tree.add(leafHash(line));
    return this.#tree.takeFullTiles();
  }

  /** The incomplete tiles, after the last line. */
  edge(): readonly StoredTile[] {
    return this.#tree.changedTiles();
  }

  compare({ level, index, bytes }: StoredTile, stored: Uint8Array | undefined): void {
    this.#tiles++;
    if (stored !== undefined && Buffer.compare(bytes, stored) === 0) return;
    this.#areTilesRight = false;
    if (level !== ENTRIES || stored === undefined) return;
    const different = bytes.findIndex((byte, i) => byte !== stored[i]);
    if (different >= 0) this.#changedPlace ??= index * TILE_WIDTH + Math.floor(different / HASH_BYTES) + 1;
  }

  /** The fault if the lines are not those of the published checkpoint. */
  rootFault(): TreeFault | undefined {
    if (this.#checkpoint === undefined) return undefined;
    const { size, note } = this.#checkpoint;
    const published = parseCheckpoint(parseNote(note)?.text ?? '');
    if (published?.size !== size) {
      return { place: null, problem: `the stored checkpoint is not one of size ${size}: ${NOT_THE_PUBLISHED}` };
    }
    const { size: lines } = this.#tree;
    if (lines < size) {
      const problem = `the log has ${lines} lines, and its checkpoint was published over ${size}: ${NOT_THE_PUBLISHED}`;
      return { place: null, problem };
    }
    if (Buffer.compare(this.#tree.root(), published.root) === 0) return undefined;
    const place = this.#changedPlace;
    const what = place === null ? `the first ${size} lines are not those` : 'it is not the line';
    return { place, problem: `${what} that the checkpoint was published over: ${NOT_THE_PUBLISHED}` };
  }

  /** Called after all tiles were compared; `stored` is the number in the database. */
  tilesFault(stored: number): TreeFault | undefined {
    if (this.#areTilesRight && this.#tiles === stored) return undefined;
    return { place: null, problem: 'table tiles does not match the log: run chambers rebuild' };
  }
}
