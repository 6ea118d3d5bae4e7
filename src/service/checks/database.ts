// Checks whether a start could open the database, and whether there is enough disk space. Reads the existing log.

import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Config, VARIABLES } from '../../config.ts';
import type { ExistingLog } from '../../log/existing-log.ts';
import { findSqliteLog } from '../../log/sqlite/reader.ts';
import { EXIT_FAILURE } from '../../process/exit.ts';
import { messageOf } from '../../vocabulary/errors.ts';
import type { Check } from './check.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const FREE_BYTES_MIN = 100_000_000;
const FREE_BYTES_ENOUGH = 1_000_000_000;

export const checkDatabase: Check = async (state) => {
  const variable = state.config.DATABASE_URL === undefined ? 'DATABASE_PATH' : 'DATABASE_URL';
  try {
    const { log, findings } = await findLog(state.config, { isInUse: state.isRunning });
    state.log = log;
    state.isLogReadable = true;
    return log?.isMigrationDue ? [...findings, warning('disk', MIGRATION, variable)] : findings;
  } catch (error) {
    return [problem('disk', messageOf(error), { variable, exitCode: EXIT_FAILURE })];
  }
};

const MIGRATION = "an earlier release wrote the log: the start migrates it, and that release can't open it afterwards";

const NO_STANDBY =
  'without a synchronous standby, a failover may lose lines that a checkpoint covers, and then no node can start on the log';

interface LogAndFindings {
  /** Undefined if a start would create the log. */
  readonly log: ExistingLog | undefined;
  readonly findings: readonly Finding[];
}

/** Throws the error that startup would fail with. If the database is in use, its lock is not an error. */
export async function findLog(config: Config, { isInUse }: { readonly isInUse: boolean }): Promise<LogAndFindings> {
  if (config.DATABASE_URL === undefined) {
    const log = await findSqliteLog(config.DATABASE_PATH, { isInUse, createsFolder: isDefaultPath(config) });
    return { log, findings: [] };
  }
  // Loaded only when used, because it would slow down every other start.
  const { findPostgresLog } = await import('../../log/postgres/existing-log.ts');
  const { detail, hasSynchronousStandby, log } = await findPostgresLog(config.DATABASE_URL);
  const standby = hasSynchronousStandby
    ? ok('disk', detail)
    : warning('disk', `${detail}; ${NO_STANDBY}`, 'DATABASE_URL');
  return { log, findings: [standby] };
}

/** Only the default folder is created, because a missing configured folder is more likely a mistake. */
export function isDefaultPath({ DATABASE_URL, DATABASE_PATH }: Config): boolean {
  return DATABASE_URL === undefined && DATABASE_PATH === VARIABLES.DATABASE_PATH.fallback;
}

/** Never stops a start: on a full disk the service serves reads, and writes once there is space. */
export const checkSpace: Check = async ({ config: { DATABASE_PATH, DATABASE_URL }, isLogReadable }) => {
  if (DATABASE_URL !== undefined || DATABASE_PATH === ':memory:' || !isLogReadable) return [];
  const parent = dirname(DATABASE_PATH);
  const folder = (await stat(parent).catch(() => undefined)) === undefined ? '.' : parent;
  const { bavail, bsize } = await statfs(folder);
  const freeBytes = bavail * bsize;
  const detail = `${(freeBytes / 1e9).toFixed(1)} GB free in ${folder}`;
  if (freeBytes < FREE_BYTES_MIN) return [problem('disk', detail, { variable: 'DATABASE_PATH' })];
  return [freeBytes < FREE_BYTES_ENOUGH ? warning('disk', detail, 'DATABASE_PATH') : ok('disk', detail)];
};
