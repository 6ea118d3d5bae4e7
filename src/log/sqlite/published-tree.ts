// The published tree in an SQLite file.
import type { Publication, PublishedTree, StoredCheckpoint } from '../published-tree.ts';
import { REPLACE_NOTE, SqlPublishedTree, type TreeParts, toTileRow } from '../sql/published-tree.ts';
import { CHECKPOINTS, TILES, upsert } from '../sql/tables.ts';
import { Conflict, type Writer } from './writer.ts';

export class SqlitePublishedTree extends SqlPublishedTree {
  readonly #writer: Writer | undefined;

  /** Without a writer, the tree is read-only. */
  constructor(parts: TreeParts, writer?: Writer) {
    super(parts);
    this.#writer = writer;
  }

  onOneServer<Result>(work: (tree: PublishedTree) => Promise<Result>): Promise<Result> {
    return work(this);
  }

  async confirm(): Promise<void> {}

  protected async placeLines(): Promise<void> {}

  async publish({ from, checkpoint, tiles }: Publication): Promise<boolean> {
    const values = [this.parts.logId, checkpoint.size, checkpoint.note, from];
    const rows = tiles.map((tile) => {
      const { level, tile: index } = toTileRow(tile);
      return { text: WRITE_TILE, values: [level, index, tile.bytes] };
    });
    try {
      await this.#writer?.change([{ text: PUBLISH, values, changesMin: 1 }, ...rows]);
      return this.#writer !== undefined;
    } catch (error) {
      if (error instanceof Conflict) return false;
      throw error;
    }
  }

  async replaceNote({ size, note: former }: StoredCheckpoint, note: string): Promise<boolean> {
    const values = [note, this.parts.logId, size, former];
    const changes = await this.#writer?.change([{ text: REPLACE_NOTE, values }]);
    return (changes?.[0] ?? 0) > 0;
  }
}

/** Inserts the first checkpoint, or replaces the one with the size `from`. */
const PUBLISH = upsert(
  CHECKPOINTS,
  'SELECT $1, $2, $3 WHERE $4 = (SELECT coalesce(max(size), 0) FROM checkpoints WHERE log_id = $1)',
);
const WRITE_TILE = upsert(TILES, 'VALUES ($1, $2, $3)');
