// The published tree in either database. Lines get places after they are committed, and places never change, so all publishers compute the
// same tree. The lease and the size of the stored checkpoint prevent all but one publisher from writing it.
import type { ReadTiles, StoredTile } from '../../tlog/tiled-tree.ts';
import type { DamagedStreams } from '../damage.ts';
import {
  leafOf,
  type PlacedEvent,
  type Publication,
  type PublishedTree,
  type StoredCheckpoint,
  type StoredLeaf,
  storedLevel,
} from '../published-tree.ts';
import { type Columns, jsonRows, type Sql, toStream } from './sql.ts';

export interface TreeParts {
  readonly logId: string;
  readonly sql: Sql;
  readonly damagedStreams: DamagedStreams;
}

export abstract class SqlPublishedTree implements PublishedTree {
  protected readonly parts: TreeParts;

  constructor(parts: TreeParts) {
    this.parts = parts;
  }

  abstract onOneServer<Result>(work: (tree: PublishedTree) => Promise<Result>): Promise<Result>;
  abstract confirm(): Promise<void>;
  abstract publish(publication: Publication): Promise<boolean>;
  abstract replaceNote(from: StoredCheckpoint, note: string): Promise<boolean>;
  protected abstract placeLines(): Promise<unknown>;

  checkpoint(logId = this.parts.logId): Promise<StoredCheckpoint | undefined> {
    return readCheckpoint(this.parts.sql, logId);
  }

  readonly readTiles: ReadTiles = (refs) => readTiles(this.parts.sql, refs);

  async readLeaves(after: number, limit: number): Promise<Uint8Array> {
    await this.placeLines();
    const { sql, damagedStreams } = this.parts;
    const rows = await sql.query<PlacedRow & StoredLeaf>(
      `SELECT stream, event_id, nodes, nodes_crc, line_crc, CASE WHEN nodes IS NULL THEN line END AS line
       FROM ${sql.dialect.placedLines} WHERE place > $1 AND place <= $2 ORDER BY place`,
      [after, after + limit],
    );
    return Buffer.concat(rows.map((row) => leafOf(damagedStreams, toPlaced(row), row)));
  }

  async readEvents(after: number, limit: number): Promise<readonly PlacedEvent[]> {
    const { sql } = this.parts;
    const rows = await sql.query<PlacedRow>(
      `SELECT stream, event_id FROM ${sql.dialect.places} WHERE place > $1 AND place <= $2 ORDER BY place`,
      [after, after + limit],
    );
    return rows.map(toPlaced);
  }
}

export async function readCheckpoint(sql: Sql, logId: string): Promise<StoredCheckpoint | undefined> {
  const [row] = await sql.query<StoredCheckpoint>('SELECT size, note FROM checkpoints WHERE log_id = $1', [logId]);
  return row && { size: row.size, note: row.note };
}

export const TILE: Columns = { level: 'integer', tile: 'integer' };

/** Returns the stored bytes in the order of `tiles`; undefined for a missing tile. */
export async function readTiles(
  { dialect, query }: Sql,
  tiles: readonly Pick<StoredTile, 'level' | 'index'>[],
): Promise<readonly (Uint8Array | undefined)[]> {
  if (tiles.length === 0) return [];
  const rows = await query<{ readonly hashes: Buffer | null }>(
    `SELECT hashes FROM ${dialect.listed('$1', TILE)} LEFT JOIN tiles USING (level, tile) ORDER BY place`,
    [jsonRows(TILE, tiles.map(toTileRow))],
  );
  return rows.map(({ hashes }) => hashes ?? undefined);
}

export function toTileRow(tile: Pick<StoredTile, 'level' | 'index'>) {
  return { level: storedLevel(tile), tile: tile.index };
}

export const REPLACE_NOTE = 'UPDATE checkpoints SET note = $1 WHERE log_id = $2 AND size = $3 AND note = $4';

interface PlacedRow {
  readonly stream: string | number;
  readonly event_id: number;
}

function toPlaced({ stream, event_id: eventId }: PlacedRow): PlacedEvent {
  return { stream: toStream(stream), eventId };
}
