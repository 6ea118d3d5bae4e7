// The connection of appends and the clock, which are written one after another, and whether the log takes writes.
import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import { Connections, PATIENCE_MS, type PoolOptions } from './connections.ts';
import { logUnavailable } from './database-errors.ts';
import { requireRights } from './requirements.ts';
import { begin } from './session.ts';

/** A write that takes longer counts as failed until it ends: a server that is gone or frozen reports no error for a long time. */
const WRITE_MS_MAX = 1_500;

export class Writes {
  readonly connections: Connections;
  #failure: ForumError | undefined;
  /** When the writes in progress began, oldest first. */
  readonly #inProgress = new Set<{ readonly since: number }>();

  /** Planning statements for each batch would cost more than running them; the plans of lists depend on their parameters. */
  constructor(url: string, options: PoolOptions) {
    this.connections = new Connections(url, 1, {
      ...options,
      planCacheMode: 'force_generic_plan',
      silenceMillis: PATIENCE_MS,
    });
  }

  /** The error of the latest write, or of one that takes too long; undefined if it succeeded. */
  get failure(): ForumError | undefined {
    const [oldest] = this.#inProgress;
    const isLate = oldest !== undefined && performance.now() - oldest.since > WRITE_MS_MAX;
    return isLate ? logUnavailable(this.connections.problem) : this.#failure;
  }

  /** `isRepeated`: an earlier attempt may have been committed. */
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

/** The size of a large move; random bytes can't be compressed. */
const PROBE_BYTES = 65_536;

/**
 * Appends and rolls back; fails where an append would. After a failed append its success shows, without a move, that the log takes moves
 * again: so a node that a load balancer has left out comes back. The time is the present, which keeps the index by time
 * selective.
 */
export async function probeAppend(client: Client, at: Millis): Promise<void> {
  await requireRights(client);
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
