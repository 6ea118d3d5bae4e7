// Recomputes the published tree from the lines of a log.
import type { StoredTile } from '../../tlog/tiled-tree.ts';
import type { Fault } from '../stored-stream.ts';
import { TreeCheck, type TreeFault } from '../tree-check.ts';
import { readCheckpoint, readTiles, toTileRow } from './published-tree.ts';
import { jsonRows, type SqlTransaction, toStream } from './sql.ts';
import { columnsOf, insertListed, TILES } from './tables.ts';
import { readMeta } from './whole-log.ts';

/** Returns undefined if lines, tiles and checkpoint belong together. */
export async function findTreeFault(log: SqlTransaction): Promise<Fault | undefined> {
  const check = await addLines(log, async (tiles, compare) => {
    const stored = await readTiles(log, tiles);
    for (const [index, tile] of tiles.entries()) compare(tile, stored[index]);
  });
  const [row] = await log.query<{ readonly tiles: number }>('SELECT count(*) AS tiles FROM tiles');
  const fault = check.rootFault() ?? check.tilesFault(row?.tiles ?? 0);
  return fault && withEvent(log, fault);
}

/** Throws an Error of one line if the lines differ from those that the checkpoint was published over. */
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

/** Reads the lines that the checkpoint covers, and passes their tiles to `take` page by page. */
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
