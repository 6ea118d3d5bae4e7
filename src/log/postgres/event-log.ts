// The event log in PostgreSQL, to which any number of nodes append. Once an append resolves, it is on disk and on the synchronous standbys, if
// there are any. append-statement.ts explains why nodes need not coordinate.
import { HIDDEN_KEY_CHARS } from '../../crypto/http-signature.ts';
import type { AppendBatch, AppendResult, Snapshot } from '../log.ts';
import { PAGE_BYTES } from '../pages.ts';
import { type EventLogParts, SqlEventLog, snapshotValues, upsertSnapshots } from '../sql/event-log.ts';
import type { SqlValue } from '../sql/sql.ts';
import type { StreamId } from '../stream-id.ts';
import { Appender } from './append.ts';
import type { Connections } from './connections.ts';
import type { DatabaseClock } from './database-clock.ts';
import { failureOf, logUnavailable, OtherLog, withDoubt } from './database-errors.ts';
import { lookUp } from './look-up.ts';
import type { PostgresNodes } from './nodes.ts';
import { placeLines } from './places.ts';
import type { Writes } from './writes.ts';

interface Parts extends EventLogParts {
  /** Connections for all commits except appends. Commits may wait for a standby, and no read should wait behind them. */
  readonly commits: Connections;
  readonly writes: Writes;
  readonly nodes: PostgresNodes;
  readonly clock: DatabaseClock;
  /** Called after an append that was decided before a withholding. */
  readonly onOutdated: () => Promise<void>;
}

export class PostgresEventLog extends SqlEventLog {
  readonly #parts: Parts;
  readonly #appender: Appender;

  constructor(parts: Parts) {
    super(parts);
    this.#parts = parts;
    this.#appender = new Appender(parts);
  }

  async append(batch: AppendBatch): Promise<AppendResult> {
    const { writes, nodes, seen, onOutdated } = this.#parts;
    const begun = this.#appender.begin(batch);
    let mayBeWritten = false;
    const append: typeof begun = async (client, isRepeated) => {
      try {
        return await begun(client, isRepeated);
      } catch (error) {
        mayBeWritten ||= !(error instanceof OtherLog) && failureOf(error) !== 'rolled back';
        throw error;
      }
    };
    const isWrite = batch.entries.length + (batch.registrations?.length ?? 0) > 0;
    const appending = isWrite ? writes.run(append) : writes.connections.run((client) => append(client));
    const result = await appending.catch((error: unknown) => {
      nodes.giveUp(batch.entries);
      throw isWrite && mayBeWritten ? withDoubt(error) : error;
    });
    const { conflicts, found, isOutdated = false } = result;
    // Otherwise the moves would be decided against the same states again.
    if (isOutdated) await onOutdated();
    const written = conflicts.size === 0 ? batch.entries : batch.entries.filter(({ stream }) => !conflicts.has(stream));
    for (const { signature } of written) if (signature !== null) seen.add(signature);
    this.#noteFound(found);
    if (written.length > 0) nodes.announce(written);
    return { conflicts, found };
  }

  async find(signatureKeys: readonly string[]): Promise<AppendResult['found']> {
    const asked = { streams: [], signatureKeys };
    const { found } = await this.#parts.commits.run((client) => lookUp(client, asked, this.damagedStreams));
    this.#noteFound(found);
    return found;
  }

  #noteFound(found: AppendResult['found']): void {
    for (const signature of found.keys()) if (signature.length !== HIDDEN_KEY_CHARS) this.#parts.seen.add(signature);
  }

  protected placeLines(): Promise<boolean> {
    return placeLines(this.#parts.commits, this.#parts.sql);
  }

  protected unplaced(): Error {
    return logUnavailable();
  }

  /** Applies PAGE_BYTES in the query, so that the server sends no further rows. */
  protected readLines<Row>(order: string, text: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    const bytesBefore = `sum(octet_length(line) + 1) OVER (ORDER BY ${order}) - octet_length(line) - 1 AS bytes_before`;
    const rows = `SELECT *, ${bytesBefore} FROM (${text}) AS found`;
    return this.#parts.sql.query(
      `SELECT * FROM (${rows}) AS found WHERE bytes_before < ${PAGE_BYTES} ORDER BY ${order}`,
      values,
    );
  }

  async writeSnapshot(stream: StreamId, snapshot: Snapshot, withheldThrough: number): Promise<void> {
    await this.#parts.commits.query(WRITE_SNAPSHOT, [...snapshotValues(stream, snapshot), withheldThrough]);
  }

  protected write(text: string, values: readonly SqlValue[]): Promise<unknown> {
    return this.#parts.commits.query(text, values);
  }
}

/** `none` inserts nothing, but locks `events` before the statement's snapshot is taken, so no withholding commits in between. */
const WRITE_SNAPSHOT = `WITH none AS (INSERT INTO events SELECT FROM events WHERE false)
${upsertSnapshots('SELECT $1, $2, $3, $4, $5, $6 WHERE (SELECT coalesce(max(number), 0) FROM withheld) <= $7')}`;
