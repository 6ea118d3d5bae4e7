// The connection of appends and the clock, which are written one after another, and whether the log takes writes.
import type { Client } from 'pg';
import type { ForumError } from '../../vocabulary/errors.ts';
import { type ConnectionOptions, Connections, PATIENCE_MS } from './connections.ts';
import { logUnavailable } from './database-errors.ts';

/** A write that takes longer counts as failed until it ends: a server that is gone or frozen gives no error for a long time. */
const WRITE_MS_MAX = 1_500;

export class Writes {
  readonly connections: Connections;
  #failure: ForumError | undefined;
  /** When the writes under way began, oldest first. */
  readonly #underWay = new Set<{ readonly since: number }>();

  /** Planning statements for each batch would cost more than running them; the plans of lists depend on their parameters. */
  constructor(url: string, options: ConnectionOptions) {
    this.connections = new Connections(url, 1, {
      ...options,
      planCacheMode: 'force_generic_plan',
      silenceMillis: PATIENCE_MS,
    });
  }

  /** The error of the latest write, or of one that takes too long; undefined if it succeeded. */
  get failure(): ForumError | undefined {
    const [oldest] = this.#underWay;
    const isLate = oldest !== undefined && performance.now() - oldest.since > WRITE_MS_MAX;
    return isLate ? logUnavailable(this.connections.problem) : this.#failure;
  }

  /** `isRepeated`: an earlier attempt may have been committed. */
  async run<Result>(work: (client: Client, isRepeated: boolean) => Promise<Result>): Promise<Result> {
    const write = { since: performance.now() };
    this.#underWay.add(write);
    try {
      const result = await this.connections.run(work);
      this.#failure = undefined;
      return result;
    } catch (error) {
      this.#failure = logUnavailable(error);
      throw error;
    } finally {
      this.#underWay.delete(write);
    }
  }
}
