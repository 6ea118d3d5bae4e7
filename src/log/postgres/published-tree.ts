// The published tree in PostgreSQL. The node that holds the lease publishes it.
import type pg from 'pg';
import { type Publication, type PublishedTree, type StoredCheckpoint, storedLevel } from '../published-tree.ts';
import { REPLACE_NOTE, SqlPublishedTree, TILE, type TreeParts } from '../sql/published-tree.ts';
import { type Columns, jsonRows } from '../sql/sql.ts';
import { CHECKPOINTS, TILES, upsert } from '../sql/tables.ts';
import { type Runner, runnerOn } from './connections.ts';
import { POSTGRES } from './dialect.ts';
import { placeLines } from './places.ts';
import { sameLog } from './requirements.ts';
import { confirmedIf, DURABLE_COMMIT } from './session.ts';

interface Parts extends TreeParts {
  /** The connections for commits, which may wait for a standby. */
  readonly commits: Runner;
}

export class PostgresPublishedTree extends SqlPublishedTree {
  readonly #commits: Runner;

  constructor({ commits, ...parts }: Parts) {
    super(parts);
    this.#commits = commits;
  }

  onOneServer<Result>(work: (tree: PublishedTree) => Promise<Result>): Promise<Result> {
    return this.#commits.run((client) => work(this.on(client)));
  }

  /** Returns the tree on this connection's server. */
  on(client: pg.Client): PublishedTree {
    const runner = runnerOn(client);
    return new PostgresPublishedTree({ ...this.parts, sql: runner, commits: runner });
  }

  protected placeLines(): Promise<unknown> {
    return placeLines(this.#commits, this.parts.sql);
  }

  async confirm(): Promise<void> {
    await this.parts.sql.query(CONFIRM);
  }

  /** Locks the rows of the lease and of the checkpoint against other publishers until the commit. */
  async publish({ from, checkpoint, tiles, lease }: Publication): Promise<boolean> {
    const rows = tiles.map((tile) => ({ level: storedLevel(tile), tile: tile.index, hashes: tile.bytes }));
    const values = [this.parts.logId, from, lease, checkpoint.size, checkpoint.note, jsonRows(WHOLE_TILE, rows)];
    return (await this.#commits.query(PUBLISH, values)).length > 0;
  }

  async replaceNote({ size, note: former }: StoredCheckpoint, note: string): Promise<boolean> {
    const values = [note, this.parts.logId, size, former];
    return (await this.#commits.query(`${REPLACE_NOTE} RETURNING size`, values)).length > 0;
  }
}

const WHOLE_TILE: Columns = { ...TILE, hashes: 'bytes' };

const CONFIRM = `SELECT ${confirmedIf('true')}`;

const NEW_CHECKPOINT = `SELECT $1, $4, $5 FROM held
  WHERE $2::bigint = 0 OR EXISTS (SELECT FROM checkpoints WHERE log_id = $1 AND size = $2)`;

/**
 * Inserts the first checkpoint, or replaces the one with the size `from`. If another publisher was first, the statement writes nothing,
 * possibly after waiting for the row.
 */
const PUBLISH = `
WITH ${sameLog('$1')}, ${DURABLE_COMMIT.cte}, held AS MATERIALIZED (
  SELECT holder FROM leases WHERE holder = $3 AND EXISTS (SELECT FROM same_log) FOR SHARE
), published AS (
  ${upsert(CHECKPOINTS, NEW_CHECKPOINT)} WHERE checkpoints.size = $2 RETURNING size
), written AS (
  ${upsert(TILES, `SELECT level, tile, hashes FROM published, ${POSTGRES.listed('$6', WHOLE_TILE)}`)}
)
SELECT size FROM published ${DURABLE_COMMIT.evaluated}`;
