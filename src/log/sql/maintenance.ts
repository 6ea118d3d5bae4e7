// An operator's maintenance of a whole log: rebuild the derived data, continue under a new logId, reset the clock.
import type { Millis } from '../../vocabulary/values.ts';
import { CLOCK_HIGH_WATER_MARK, CLOCK_RESET, type ClockReset, planReset } from '../clock-reset.ts';
import { COPIED_FROM } from '../existing-log.ts';
import { MOVED_TO, type Renewal } from '../log-id.ts';
import { rebuildDerivedTables } from './rebuild-derived-tables.ts';
import { type SqlTransaction, toStream } from './sql.ts';
import { rebuildTiles } from './stored-tree.ts';
import { CHECKPOINTS, upsert } from './tables.ts';
import { readMeta, throwFault, type WritableLog, writeMeta } from './whole-log.ts';

export interface RebuildSummary {
  readonly chambers: number;
  readonly ideas: number;
}

/**
 * Rebuilds the derived tables and the tiles, all or nothing. Throws a single-line Error if a line is damaged, or was changed after it was
 * published.
 */
export async function rebuild(log: WritableLog): Promise<RebuildSummary> {
  await log.blockAppends();
  await log.emptyDerivedTables();
  await rebuildDerivedTables(log, { into: 'stored', onFault: throwFault });
  await rebuildTiles(log);
  const counts = 'SELECT (SELECT count(*) FROM chambers) AS chambers, (SELECT count(*) FROM ideas) AS ideas';
  const [summary] = await log.query<RebuildSummary>(counts);
  await log.commit();
  return { chambers: summary?.chambers ?? 0, ideas: summary?.ideas ?? 0 };
}

export interface RenewedId {
  readonly logId: string;
  readonly copiedFrom: string;
}

/** Gives the log a new logId. Running nodes stop writing once they see it. A log that had moved accepts events again. */
export async function renewLog(log: WritableLog, renewal: Renewal): Promise<RenewedId> {
  const { logId, former, prepare } = renewal;
  await log.blockAppends();
  const renewed = await renewLogId(log, logId);
  // The tree is published again, under the new name.
  await log.run('DELETE FROM tiles');
  if (former !== undefined) {
    await log.query(upsert(CHECKPOINTS, 'VALUES ($1, $2, $3)'), [former.logId, former.size, former.note]);
  }
  await log.allowAppends(true);
  await prepare?.();
  await log.commit();
  return renewed;
}

export async function renewLogId(log: SqlTransaction, logId: string): Promise<RenewedId> {
  const copiedFrom = (await readMeta(log, 'log_id')) ?? '';
  await writeMeta(log, 'log_id', logId);
  await writeMeta(log, COPIED_FROM, copiedFrom);
  await log.query('DELETE FROM meta WHERE name = $1', [MOVED_TO]);
  return { logId, copiedFrom };
}

/**
 * Resets the log's time to `time`, by default the time of the log's clock. Throws a single-line Error if the log's time is not in the
 * future, or a service runs on the log.
 */
export async function resetClock(log: WritableLog, time?: Millis): Promise<ClockReset> {
  await log.requireNoService();
  const now = time ?? (await log.now());
  const ahead = await log.query<{ readonly stream: string; readonly until: number }>(
    `SELECT stream, max(at) AS until FROM ${log.dialect.lines} WHERE at > $1 GROUP BY stream ORDER BY until`,
    [now],
  );
  const waiting = ahead.map(({ stream, until }) => ({ stream: toStream(stream), until }));
  const reset = planReset({ lastAt: await log.lastAt(), waiting }, now);
  await writeMeta(log, CLOCK_RESET, JSON.stringify(reset));
  await writeMeta(log, CLOCK_HIGH_WATER_MARK, String(now));
  await log.commit();
  return reset;
}
