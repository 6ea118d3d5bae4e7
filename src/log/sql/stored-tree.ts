// Recomputes the published tree from the lines. `fsck` compares it with the stored tiles, and `rebuild` replaces them. Tiles follow from the
// lines, but checkpoints are signed, and others have copies. If the root of the lines differs from that of the stored checkpoint, the lines
// were changed after it was published, and no repair of this database can reconcile them.
import { HASH_BYTES } from '../../crypto/merkle.ts';
import { storedLeaf } from '../../crypto/stub.ts';
import { parseCheckpoint } from '../../tlog/checkpoint.ts';
import { parseNote } from '../../tlog/note.ts';
import { ENTRIES, TILE_WIDTH } from '../../tlog/tile.ts';
import { GrowingTree, type StoredTile } from '../../tlog/tiled-tree.ts';
import { TREE } from '../../tlog/tree.ts';
import type { StoredCheckpoint } from '../published-tree.ts';
import type { Fault } from '../stored-stream.ts';
import { readCheckpoint, readTiles, toTileRow } from './published-tree.ts';
import { jsonRows, type SqlTransaction, toStream } from './sql.ts';
import { columnsOf, insertListed, TILES } from './tables.ts';
import { readMeta } from './whole-log.ts';

/** Returns undefined if lines, tiles and checkpoint are consistent. */
export async function findTreeFault(log: SqlTransaction): Promise<Fault | undefined> {
  const check = await addLines(log, async (tiles, compare) => {
    const stored = await readTiles(log, tiles);
    for (const [index, tile] of tiles.entries()) compare(tile, stored[index]);
  });
  const [row] = await log.query<{ readonly tiles: number }>('SELECT count(*) AS tiles FROM tiles');
  const fault = check.rootFault() ?? check.tilesFault(row?.tiles ?? 0);
  return fault && withEvent(log, fault);
}

/** Throws a single-line Error if the lines differ from those that the checkpoint covers. */
export async function rebuildTiles(log: SqlTransaction): Promise<void> {
  await log.run('DELETE FROM tiles');
  const check = await addLines(log, async (tiles) => {
    const rows = tiles.map((tile) => ({ ...toTileRow(tile), hashes: tile.bytes }));
    await log.query(insertListed(log.dialect, TILES), [jsonRows(columnsOf(TILES), rows)]);
  });
  const fault = check.rootFault();
  if (fault !== undefined) throw new Error(fault.problem);
}

type Take = (tiles: readonly StoredTile[], compare: TreeCheck['compare']) => Promise<void>;

/** Reads the lines that the checkpoint covers, and passes their tiles to `take`, page by page. */
async function addLines(log: SqlTransaction, take: Take): Promise<TreeCheck> {
  const check = new TreeCheck(await readCheckpoint(log, (await readMeta(log, 'log_id')) ?? ''));
  const takeSome = async (tiles: readonly StoredTile[]) => {
    if (tiles.length > 0) await take(tiles, (tile, stored) => check.compare(tile, stored));
  };
  const lines = `SELECT line FROM ${log.dialect.placedLines} WHERE place <= ${check.size} ORDER BY place`;
  for await (const rows of log.pages<{ readonly line: Buffer }>(lines)) {
    await takeSome(rows.flatMap(({ line }) => check.add(line)));
  }
  await takeSome(check.edge());
  return check;
}

async function withEvent({ query, dialect }: SqlTransaction, { place, problem }: TreeFault): Promise<Fault> {
  const [row] = await query<{ readonly stream: string | number; readonly event_id: number; readonly place?: number }>(
    `SELECT * FROM ${dialect.lines} WHERE (stream, event_id) IN (SELECT stream, event_id FROM ${dialect.places} WHERE place = $1)`,
    [place],
  );
  if (row === undefined) return { position: null, stream: null, eventId: null, problem };
  return { position: row.place ?? null, stream: toStream(row.stream), eventId: row.event_id, problem };
}

const RECOVERY = 'restore a backup, or run chambers new-log to continue as another log';

interface TreeFault {
  /** The first line that differs from the published one; null if the fault is not in a known line. */
  readonly place: number | null;
  readonly problem: string;
}

class TreeCheck {
  readonly #checkpoint: StoredCheckpoint | undefined;
  readonly #tree = new GrowingTree(0, [], TREE);
  #tiles = 0;
  #areTilesRight = true;
  #changedPlace: number | null = null;

  constructor(checkpoint: StoredCheckpoint | undefined) {
    this.#checkpoint = checkpoint;
  }

  /** The number of lines to add, ordered by place. */
  get size(): number {
    return this.#checkpoint?.size ?? 0;
  }

  /** Returns the tiles that this line completes. */
  add(line: Uint8Array): readonly StoredTile[] {
    this.#tree.add(storedLeaf(line));
    return this.#tree.takeFullTiles();
  }

  /** Returns the incomplete tiles after the last line. */
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

  /** Returns a fault if the lines are not those of the published checkpoint. */
  rootFault(): TreeFault | undefined {
    if (this.#checkpoint === undefined) return undefined;
    const { size, note } = this.#checkpoint;
    const published = parseCheckpoint(parseNote(note)?.text ?? '');
    if (published?.size !== size) {
      return { place: null, problem: `the stored checkpoint does not have size ${size}: ${RECOVERY}` };
    }
    const { size: lines } = this.#tree;
    if (lines < size) {
      const problem = `the log has ${lines} lines, but its published checkpoint covers ${size}: ${RECOVERY}`;
      return { place: null, problem };
    }
    if (Buffer.compare(this.#tree.root(), published.root) === 0) return undefined;
    const place = this.#changedPlace;
    const what = place === null ? `the first ${size} lines are not those` : 'it is not the line';
    return { place, problem: `${what} that the published checkpoint covers: ${RECOVERY}` };
  }

  /** Called after all tiles were compared. `stored` is the number of tiles in the database. */
  tilesFault(stored: number): TreeFault | undefined {
    if (this.#areTilesRight && this.#tiles === stored) return undefined;
    return { place: null, problem: 'table tiles does not match the log: run chambers rebuild' };
  }
}
