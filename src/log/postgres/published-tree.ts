// The published tree in PostgreSQL. Lines have places once they are committed (order.ts), whichever node gives them, so any two
// publishers compute the same tree; the lease and the size of the stored checkpoint keep all but one from writing it.
import type pg from 'pg';
import type { ReadTiles, TileRef } from '../../tlog/tiled-tree.ts';
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
import { bigintArray, byteaArray } from './arrays.ts';
import { type Runner, runnerOn } from './connections.ts';
import { toStream } from './growth.ts';
import { sameLog } from './log-identity.ts';
import { placeLines } from './order.ts';
import { confirmedIf, DURABLY } from './session.ts';

interface Parts {
  readonly logId: string;
  readonly connections: Runner;
  /** For what commits. */
  readonly commits: Runner;
  readonly damages: Damages;
}

export class PostgresPublishedTree implements PublishedTree {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  pinned<Result>(work: (tree: PublishedTree) => Promise<Result>): Promise<Result> {
    return this.#parts.commits.run((client) => work(this.on(client)));
  }

  /** The tree as the server behind the connection has it. */
  on(client: pg.Client): PublishedTree {
    const runner = runnerOn(client);
    return new PostgresPublishedTree({ ...this.#parts, connections: runner, commits: runner });
  }

  async checkpoint(logId = this.#parts.logId): Promise<StoredCheckpoint | undefined> {
    const [row] = await this.#parts.connections.query<CheckpointRow>('checkpoint', CHECKPOINT, [logId]);
    return row && { size: Number(row.size), note: row.note };
  }

  async confirm(): Promise<void> {
    await this.#parts.connections.query('confirm', CONFIRM, []);
  }

  readonly readTiles: ReadTiles = async (refs) => {
    if (refs.length === 0) return [];
    const rows = await this.#parts.connections.query<TileRow>('tiles', TILES, tileKeys(refs));
    return rows.map(({ hashes }) => hashes ?? undefined);
  };

  async readLeaves(after: number, limit: number): Promise<Uint8Array> {
    const { connections, commits } = this.#parts;
    await placeLines(commits, connections);
    const rows = await connections.query<LeafRow>('leaves', LEAVES, [after, after + limit]);
    return Buffer.concat(rows.map((row) => leafOf(this.#parts.damages, toPlaced(row), row)));
  }

  async readEvents(after: number, limit: number): Promise<readonly PlacedEvent[]> {
    const rows = await this.#parts.connections.query<PlacedRow>('placed', PLACED, [after, after + limit]);
    return rows.map(toPlaced);
  }

  /** The rows of the lease and of the checkpoint are locked against another publisher until the commit. */
  publish({ from, checkpoint, tiles, lease }: Publication): Promise<boolean> {
    const { commits, logId } = this.#parts;
    return commits.run(async (client: pg.Client) => {
      const { rowCount } = await client.query({
        name: 'publish',
        text: PUBLISH,
        values: [
          ...[logId, from, lease, checkpoint.size, checkpoint.note],
          ...tileKeys(tiles),
          byteaArray(tiles.map(({ bytes }) => bytes)),
        ],
      });
      return (rowCount ?? 0) > 0;
    });
  }

  async replaceNote(from: StoredCheckpoint, note: string): Promise<boolean> {
    const { commits, logId } = this.#parts;
    const rows = await commits.query('replace note', REPLACE_NOTE, [note, logId, from.size, from.note]);
    return rows.length > 0;
  }
}

/** The levels and the indexes, as parameters. */
export function tileKeys(tiles: readonly TileRef[]): readonly Buffer[] {
  return [bigintArray(tiles.map(storedLevel)), bigintArray(tiles.map(({ index }) => index))];
}

function toPlaced({ stream, event_id: eventId }: PlacedRow): PlacedEvent {
  return { stream: toStream(stream), eventId: Number(eventId) };
}

interface CheckpointRow {
  readonly size: string;
  readonly note: string;
}

export interface TileRow {
  /** Null where there is no such tile. */
  readonly hashes: Buffer | null;
}

interface PlacedRow {
  readonly stream: string;
  readonly event_id: string;
}

type LeafRow = PlacedRow & StoredLeaf;

const CHECKPOINT = 'SELECT size, note FROM checkpoints WHERE log_id = $1';

const CONFIRM = `SELECT ${confirmedIf('true')}`;

/** The tiles in the order of their keys. */
export const TILES = `
SELECT hashes FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS asked (level, tile, place)
LEFT JOIN tiles USING (level, tile) ORDER BY place`;

const LEAVES = `
SELECT stream, event_id, nodes, nodes_crc, line_crc, CASE WHEN nodes IS NULL THEN line END AS line
FROM places JOIN events USING (stream, event_id) WHERE place > $1 AND place <= $2 ORDER BY place`;

const PLACED = 'SELECT stream, event_id FROM places WHERE place > $1 AND place <= $2 ORDER BY place';

/**
 * The first checkpoint is inserted, a later one replaces one of the size that it follows; a competitor makes the statement write
 * nothing, or wait for the row and then write nothing.
 */
const PUBLISH = `
WITH ${sameLog('$1')}, ${DURABLY.cte}, held AS MATERIALIZED (
  SELECT holder FROM leases WHERE holder = $3 AND EXISTS (SELECT FROM same_log) FOR SHARE
), published AS (
  INSERT INTO checkpoints SELECT $1, $4, $5 FROM held
  WHERE $2::bigint = 0 OR EXISTS (SELECT FROM checkpoints WHERE log_id = $1 AND size = $2)
  ON CONFLICT (log_id) DO UPDATE SET size = excluded.size, note = excluded.note WHERE checkpoints.size = $2
  RETURNING size
), written AS (
  INSERT INTO tiles SELECT level, tile, hashes FROM published, unnest($6::bigint[], $7::bigint[], $8::bytea[]) AS rows (level, tile, hashes)
  ON CONFLICT (level, tile) DO UPDATE SET hashes = excluded.hashes
)
SELECT size FROM published ${DURABLY.evaluated}`;

const REPLACE_NOTE = 'UPDATE checkpoints SET note = $1 WHERE log_id = $2 AND size = $3 AND note = $4 RETURNING size';
