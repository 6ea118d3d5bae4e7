// The published tree in either database. Lines have places once they are committed, and no place changes, so any two publishers compute
// the same tree; the lease and the size of the stored checkpoint keep all but one from writing it.
import type { ReadTiles } from '../../tlog/tiled-tree.ts';
import type { Damages } from '../damage.ts';
import {
  leafOf,
  type PlacedEvent,
  type Publication,
  type PublishedTree,
  type StoredCheckpoint,
  type StoredLeaf,
  storedLevel,
} from '../published-tree.ts';
import { type Columns, jsonRows, type Sql } from './sql.ts';
import { toStream } from './stored-line.ts';

export interface TreeParts {
  readonly logId: string;
  readonly sql: Sql;
  readonly damages: Damages;
}

/** A database brings what writes. */
export abstract class SqlPublishedTree implements PublishedTree {
  protected readonly parts: TreeParts;

  constructor(parts: TreeParts) {
    this.parts = parts;
  }

  abstract pinned<Result>(work: (tree: PublishedTree) => Promise<Result>): Promise<Result>;
  abstract confirm(): Promise<void>;
  abstract publish(publication: Publication): Promise<boolean>;
  abstract replaceNote(from: StoredCheckpoint, note: string): Promise<boolean>;
  /** Gives a place to the lines that have none. */
  protected abstract placeLines(): Promise<unknown>;

  async checkpoint(logId = this.parts.logId): Promise<StoredCheckpoint | undefined> {
    const [row] = await this.parts.sql.query<StoredCheckpoint>(CHECKPOINT, [logId]);
    return row && { size: row.size, note: row.note };
  }

  readonly readTiles: ReadTiles = async (refs) => {
    if (refs.length === 0) return [];
    const asked = refs.map((ref) => ({ level: storedLevel(ref), tile: ref.index }));
    const { dialect } = this.parts.sql;
    const rows = await this.parts.sql.query<TileRow>(
      `SELECT hashes FROM ${dialect.listed('$1', TILE)} LEFT JOIN tiles USING (level, tile) ORDER BY place`,
      [jsonRows(TILE, asked)],
    );
    return rows.map(({ hashes }) => hashes ?? undefined);
  };

  async readLeaves(after: number, limit: number): Promise<Uint8Array> {
    await this.placeLines();
    const { sql, damages } = this.parts;
    const rows = await sql.query<LeafRow>(
      `SELECT stream, event_id, nodes, nodes_crc, line_crc, CASE WHEN nodes IS NULL THEN line END AS line
       FROM ${sql.dialect.placedLines} WHERE place > $1 AND place <= $2 ORDER BY place`,
      [after, after + limit],
    );
    return Buffer.concat(rows.map((row) => leafOf(damages, toPlaced(row), row)));
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

export const TILE: Columns = { level: 'integer', tile: 'integer' };

const CHECKPOINT = 'SELECT size, note FROM checkpoints WHERE log_id = $1';

export const REPLACE_NOTE = 'UPDATE checkpoints SET note = $1 WHERE log_id = $2 AND size = $3 AND note = $4';

function toPlaced({ stream, event_id: eventId }: PlacedRow): PlacedEvent {
  return { stream: toStream(stream), eventId };
}

export interface TileRow {
  /** Null where there is no such tile. */
  readonly hashes: Buffer | null;
}

interface PlacedRow {
  readonly stream: string | number;
  readonly event_id: number;
}

type LeafRow = PlacedRow & StoredLeaf;
