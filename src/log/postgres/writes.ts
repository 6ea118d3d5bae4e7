// Runs appends and clock writes one after another on one connection, and tracks whether the log accepts writes.
import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import { Connections, type PoolOptions, RETRY_WINDOW_MS } from './connections.ts';
import { logUnavailable } from './database-errors.ts';
import { requirePrivileges } from './requirements.ts';
import { begin } from './session.ts';

/** A write that takes longer counts as failed until it ends, because a lost or frozen server reports no error for a long time. */
const WRITE_MS_MAX = 1_500;

export class Writes {
  readonly connections: Connections;
  #failure: ForumError | undefined;
  /** The start times of the writes in progress, oldest first. */
  readonly #inProgress = new Set<{ readonly since: number }>();

  /** Uses generic plans: planning a statement for each batch would cost more than running it. */
  constructor(url: string, options: PoolOptions) {
    this.connections = new Connections(url, 1, {
      ...options,
      planCacheMode: 'force_generic_plan',
      responseTimeoutMillis: RETRY_WINDOW_MS,
    });
  }

  /** The error of the latest write, or of a write that takes too long; undefined if the latest write succeeded. */
  get failure(): ForumError | undefined {
    const [oldest] = this.#inProgress;
    const isLate = oldest !== undefined && performance.now() - oldest.since > WRITE_MS_MAX;
    return isLate ? logUnavailable(this.connections.problem) : this.#failure;
  }

  async run<Result>(work: (client: Client, isRepeated: boolean) => Promise<Result>): Promise<Result> {
    const write = { since: performance.now() };
    this.#inProgress.add(write);
    try {
      const result = await this.connections.run(work);
      this.#failure = undefined;
      return result;
    } catch (error) {
      this.#failure = logUnavailable(error);
      throw error;
    } finally {
      this.#inProgress.delete(write);
    }
  }
}

/** The size of a large move, filled with random bytes, which can't be compressed. */
const PROBE_BYTES = 65_536;

/**
 * Appends and rolls back; fails whenever an append would. After a failed append, success shows without a move that the log accepts moves
 * again, so that a load balancer readmits the node. `at` is the current time, which keeps the index on time selective.
 */
export async function probeAppend(client: Client, at: Millis): Promise<void> {
  await requirePrivileges(client);
  await begin(client);
  try {
    const stream = `probe ${randomUUID()}`;
    await client.query('INSERT INTO events (stream, event_id, at, line, line_crc) VALUES ($1, 0, $2, $3, 0)', [
      stream,
      at,
      randomBytes(PROBE_BYTES),
    ]);
    await client.query('INSERT INTO unplaced_events VALUES ($1, 0)', [stream]);
  } finally {
    await client.query('ROLLBACK');
  }
}
