// Withholding in PostgreSQL, which any number of nodes share. While its statements run, the transaction locks `events` against appends and
// snapshots; sql/withholding.ts explains why no withheld text returns. Other nodes learn of the withholding from a wake-up, which may be lost,
// so each node also queries the last number every second. The bytes are removed from the server's files when the operator runs VACUUM FULL
// on TABLES_WITH_TEXTS.
import type { Client } from 'pg';
import { detach, repeat } from '../../process/detach.ts';
import type { RestatedStub } from '../sql/restated-stubs.ts';
import { toStream } from '../sql/sql.ts';
import { SNAPSHOTS, TABLES } from '../sql/tables.ts';
import { lastNumber } from '../sql/withheld-lines.ts';
import { type WithholdPlan, type WithholdStatement, withholdStatements } from '../sql/withheld-rows.ts';
import { SqlWithholding, type WithholdingParts } from '../sql/withholding.ts';
import { type Erasure, WITHHELD_UNCONFIRMED_MS_MAX } from '../withholding.ts';
import type { Connections } from './connections.ts';
import { OtherLog } from './database-errors.ts';
import { POSTGRES } from './dialect.ts';
import { readLogId } from './requirements.ts';
import { begin } from './session.ts';

/** The tables that hold agents' texts. VACUUM FULL removes the bytes of their replaced rows. */
export const TABLES_WITH_TEXTS: readonly string[] = ['events', TABLES.chamber.name, TABLES.idea.name, SNAPSHOTS.name];

const CONFIRM_INTERVAL_MS = 1_000;
/** Appends queue behind the lock request. */
const LOCK_WAIT_MS = 2_000;

interface Parts extends WithholdingParts {
  readonly logId: string;
  readonly commits: Connections;
  /** Wakes the other nodes. */
  readonly onWritten: () => void;
}

const NOTHING_PENDING: Erasure = { isPending: false, problem: undefined };

export class PostgresWithholding extends SqlWithholding {
  readonly erasure = NOTHING_PENDING;
  readonly #parts: Parts;
  readonly #stop: () => void;
  /** The performance.now() before the query that confirmed `through` was sent. */
  #confirmedAt = performance.now();
  #checking: Promise<void> | undefined;

  constructor(parts: Parts) {
    super(parts);
    this.#parts = parts;
    this.#stop = repeat(() => this.#confirm(), CONFIRM_INTERVAL_MS);
  }

  /** Called when another process may have withheld a line. */
  checkSoon(): void {
    detach(this.#confirm());
  }

  async #confirm(): Promise<void> {
    try {
      await this.check();
    } catch {
      if (performance.now() - this.#confirmedAt < WITHHELD_UNCONFIRMED_MS_MAX) return;
      // Data that is read from now on is confirmed or dropped within the same period.
      this.#confirmedAt = performance.now();
      this.announceUnknown();
    }
  }

  /** Announces the withholdings of other processes. */
  async check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    await this.#checking;
  }

  async #check(): Promise<void> {
    const { sql } = this.#parts;
    const sentAt = performance.now();
    const last = await lastNumber(sql);
    if (last > this.through) {
      const rows = await sql.query<{ readonly stream: string }>(
        'SELECT DISTINCT stream FROM withheld WHERE number > $1 AND number <= $2',
        [this.through, last],
      );
      this.announce(new Set(rows.map(({ stream }) => toStream(stream))), last);
    }
    this.#confirmedAt = sentAt;
  }

  protected async write(plan: WithholdPlan): Promise<boolean> {
    try {
      return await this.#parts.commits.run((client) => this.#writeOn(client, withholdStatements(POSTGRES, plan)));
    } finally {
      this.#parts.onWritten();
      // The commit may have succeeded even if its result was lost.
      await this.check().catch(() => {});
    }
  }

  protected writeRestated(_: readonly RestatedStub[], statements: readonly WithholdStatement[]): Promise<boolean> {
    return this.#parts.commits.run((client) => this.#writeOn(client, statements));
  }

  async #writeOn(client: Client, statements: readonly WithholdStatement[]): Promise<boolean> {
    await begin(client);
    try {
      await client.query(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}; LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE`);
      const found = await readLogId(client);
      if (found !== this.#parts.logId) throw new OtherLog(found, this.#parts.logId);
      for (const { text, values, changesMin = 0 } of statements) {
        const { rowCount } = await client.query(text, [...values]);
        if ((rowCount ?? 0) >= changesMin) continue;
        await client.query('ROLLBACK');
        return false;
      }
      await client.query('COMMIT');
      return true;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {});
      throw error;
    }
  }

  close(): void {
    this.#stop();
  }
}
