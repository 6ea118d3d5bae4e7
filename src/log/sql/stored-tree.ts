// The published tree as a whole log stores it, computed again from the lines.
import type { StoredTile } from '../../tlog/tiled-tree.ts';
import { type StoredCheckpoint, storedLevel } from '../published-tree.ts';
import type { Fault } from '../stored-stream.ts';
import { TreeCheck, type TreeFault } from '../tree-check.ts';
import { TILE, type TileRow } from './published-tree.ts';
import { jsonRows, type SqlTransaction } from './sql.ts';
import { toStream } from './stored-line.ts';
import { columnsOf, insertListed, TILES } from './tables.ts';
import { readMeta } from './whole-log.ts';

/** Undefined if lines, tiles and checkpoint belong together. */
export async function findTreeFault(log: SqlTransaction): Promise<Fault | undefined> {
  const { dialect } = log;
  const stored = `SELECT hashes FROM ${dialect.listed('$1', TILE)} LEFT JOIN tiles USING (level, tile) ORDER BY place`;
  const check = await addLines(log, async (tiles, compare) => {
    const rows = await log.query<TileRow>(stored, [jsonRows(TILE, tiles.map(toTileRow))]);
    for (const [index, tile] of tiles.entries()) compare(tile, rows[index]?.hashes ?? undefined);
  });
  const [row] = await log.query<{ readonly tiles: number }>('SELECT count(*) AS tiles FROM tiles');
  const fault = check.rootFault() ?? check.tilesFault(row?.tiles ?? 0);
  return fault && withEvent(log, fault);
}

/** Throws an Error of one line if the lines are not those that the checkpoint was published over. */
export async function rebuildTiles(log: SqlTransaction): Promise<void> {
  await log.run('DELETE FROM tiles');
  const text = insertListed(log.dialect, TILES);
  const check = await addLines(log, async (tiles) => {
    const rows = tiles.map((tile) => ({ ...toTileRow(tile), hashes: tile.bytes }));
    await log.query(text, [jsonRows(columnsOf(TILES), rows)]);
  });
  const fault = check.rootFault();
  if (fault !== undefined) throw new Error(fault.problem);
}

type Compare = (tile: StoredTile, stored: Uint8Array | undefined) => void;

/** Reads the lines that the checkpoint is over; `take` gets the tiles that follow from them, some at a time. */
async function addLines(
  log: SqlTransaction,
  take: (tiles: readonly StoredTile[], compare: Compare) => Promise<void>,
): Promise<TreeCheck> {
  const logId = (await readMeta(log, 'log_id')) ?? '';
  const [checkpoint] = await log.query<StoredCheckpoint>('SELECT size, note FROM checkpoints WHERE log_id = $1', [
    logId,
  ]);
  const check = new TreeCheck(checkpoint);
  const compare: Compare = (tile, stored) => check.compare(tile, stored);
  const takeSome = async (tiles: readonly StoredTile[]) => {
    if (tiles.length > 0) await take(tiles, compare);
  };
  const lines = `SELECT line FROM ${log.dialect.placedLines} WHERE place <= ${check.size} ORDER BY place`;
  for await (const rows of log.pages<{ readonly line: Buffer }>(lines)) {
    await takeSome(rows.flatMap(({ line }) => check.add(line)));
  }
  await takeSome(check.edge());
  return check;
}

function toTileRow(tile: StoredTile) {
  return { level: storedLevel(tile), tile: tile.index };
}

async function withEvent({ query, dialect }: SqlTransaction, { place, problem }: TreeFault): Promise<Fault> {
  const [row] = await query<{ readonly stream: string | number; readonly event_id: number; readonly place?: number }>(
    `SELECT * FROM ${dialect.lines} WHERE (stream, event_id) IN (SELECT stream, event_id FROM ${dialect.places} WHERE place = $1)`,
    [place],
  );
  if (row === undefined) return { position: null, stream: null, eventId: null, problem };
  return { position: row.place ?? null, stream: toStream(row.stream), eventId: row.event_id, problem };
}
