// Metadata stored with the log, and the log's clock. Each driver adds the writes.
import type { ForumError } from '../../vocabulary/errors.ts';
import type { Millis } from '../../vocabulary/values.ts';
import { CLOCK_RESET, parseReset } from '../clock-reset.ts';
import { CHAIN_ID, COPIED_FROM, type ExistingLog, OPEN_CHAMBERS_MAX } from '../existing-log.ts';
import { MOVED_TO, requireNotMoved, SERVICE_KEYS, toKeyIds } from '../log-id.ts';
import type { LogMeta } from '../store.ts';
import type { Sql, SqlValue } from './sql.ts';

export abstract class SqlMeta implements LogMeta {
  readonly #sql: Sql;
  #lastAt: Millis;

  constructor(sql: Sql, lastAt: Millis) {
    this.#sql = sql;
    this.#lastAt = lastAt;
  }

  abstract get writeFailure(): ForumError | undefined;
  /** Writes data that is not part of a move. */
  protected abstract write(text: string, values: readonly SqlValue[]): Promise<unknown>;
  /** Queues behind the appends, and fails whenever an append would. */
  protected abstract writeClock(at: Millis): Promise<void>;

  get lastAt(): Millis {
    return this.#lastAt;
  }

  async recall(name: string): Promise<string | undefined> {
    const [row] = await this.#sql.query<{ readonly value: string }>('SELECT value FROM meta WHERE name = $1', [name]);
    return row?.value;
  }

  async remember(name: string, value: string): Promise<void> {
    await this.write('INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING', [name, value]);
  }

  async replace(name: string, before: string, value: string): Promise<void> {
    await this.write('UPDATE meta SET value = $3 WHERE name = $1 AND value = $2', [name, before, value]);
  }

  async persistClock(at: Millis): Promise<void> {
    await this.writeClock(at);
    this.#lastAt = Math.max(this.#lastAt, at);
  }
}

type DriverFacts = Pick<ExistingLog, 'isMigrationDue' | 'lastAt' | 'now' | 'withTree'>;

/** Reads only tables and columns that exist in every earlier release. */
export async function readExistingLog(sql: Sql, facts: DriverFacts): Promise<ExistingLog> {
  const rows = await sql.query<{ readonly name: string; readonly value: string }>('SELECT name, value FROM meta');
  const meta = new Map(rows.map(({ name, value }) => [name, value]));
  requireNotMoved(meta.get(MOVED_TO));
  const chainId = meta.get(CHAIN_ID);
  const [last] = await sql.query<ChamberRow>('SELECT coalesce(max(chamber_id), 0) AS chamber_id FROM chambers');
  const open = await sql.query<ChamberRow>(
    'SELECT chamber_id FROM chambers WHERE NOT is_committed ORDER BY chamber_id DESC LIMIT $1',
    [OPEN_CHAMBERS_MAX],
  );
  return {
    ...facts,
    logId: meta.get('log_id') ?? '',
    keyIds: toKeyIds(meta.get(SERVICE_KEYS)),
    isCopy: meta.has(COPIED_FROM),
    chainId: chainId === undefined ? undefined : Number(chainId),
    reset: parseReset(meta.get(CLOCK_RESET)),
    lastChamberId: last?.chamber_id ?? 0,
    openChamberIds: open.map((row) => row.chamber_id),
  };
}

type ChamberRow = Readonly<Record<'chamber_id', number>>;
