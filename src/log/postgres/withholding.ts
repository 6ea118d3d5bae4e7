// Withholding in PostgreSQL, which any number of nodes share. The transaction locks `events` against appends and snapshots, for as long as
// its statements take: sql/withholding.ts argues why no text comes back. Other nodes learn of it by a wake-up, which carries no data and
// may be lost, so each node also asks for the last number every second. The bytes leave the server's files when the operator runs VACUUM
// FULL on TABLES_WITH_TEXTS.
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

/** For VACUUM FULL, which removes the bytes of replaced rows. */
export const TABLES_WITH_TEXTS: readonly string[] = ['events', TABLES.chamber.name, TABLES.idea.name, SNAPSHOTS.name];

const CONFIRM_INTERVAL_MS = 1_000;
/** Appends wait behind the request for the lock. */
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
  /** By performance.now(), before the question whose answer confirmed `through`. */
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
      // What is read from now on is confirmed, or dropped, after as long again.
      this.#confirmedAt = performance.now();
      this.announceUnknown();
    }
  }

  /** Announces what other processes have withheld. */
  async check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    await this.#checking;
  }

  async #check(): Promise<void> {
    const { sql } = this.#parts;
    const askedAt = performance.now();
    const last = await lastNumber(sql);
    if (last > this.through) {
      const rows = await sql.query<{ readonly stream: string }>(
        'SELECT DISTINCT stream FROM withheld WHERE number > $1 AND number <= $2',
        [this.through, last],
      );
      this.announce(new Set(rows.map(({ stream }) => toStream(stream))), last);
    }
    this.#confirmedAt = askedAt;
  }

  protected async write(plan: WithholdPlan): Promise<boolean> {
    try {
      return await this.#parts.commits.run((client) => this.#writeOn(client, withholdStatements(POSTGRES, plan)));
    } finally {
      this.#parts.onWritten();
      // The commit may have succeeded without a result.
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
