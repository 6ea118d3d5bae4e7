// Opens a log for a program by its location: the path of an SQLite file, or a postgres:// URL. Each function throws single-line Errors.
// Drivers are loaded on demand, because loading them would slow down the other commands.
import { resolve } from 'node:path';
import { describeDatabase, isPostgres } from './postgres/database-url.ts';
import { type CopySummary, moveLog } from './sql/copy.ts';
import type { WholeLog, WritableLog } from './sql/whole-log.ts';

/** Runs `read` on a consistent snapshot of the log, even while a service runs on it. */
export async function readWholeLog<Result>(
  location: string,
  read: (log: WholeLog) => Promise<Result>,
): Promise<Result> {
  return closing(
    isPostgres(location)
      ? await (await postgres()).readPostgresLog(location)
      : (await sqlite()).readSqliteLog(location),
    read,
  );
}

/** Runs `write` on the log, while no other program can write to it. `write` must commit. */
export async function writeWholeLog<Result>(
  location: string,
  write: (log: WritableLog) => Promise<Result>,
): Promise<Result> {
  return closing(
    isPostgres(location)
      ? await (await postgres()).openPostgresLog(location)
      : (await sqlite()).openSqliteLog(location),
    write,
  );
}

/** Moves the log to another database, which must be empty or not exist. The source accepts no more events. */
export function copyLog(from: string, to: string): Promise<CopySummary> {
  const location = isPostgres(to) ? describeDatabase(to) : resolve(to);
  const openTarget = async () =>
    isPostgres(to) ? (await postgres()).createPostgresLog(to) : (await sqlite()).createSqliteLog(to);
  return writeWholeLog(from, (source) => moveLog({ source, openTarget, location }));
}

const postgres = () => import('./postgres/whole-log.ts');
const sqlite = () => import('./sqlite/whole-log.ts');

async function closing<Log extends WholeLog, Result>(log: Log, work: (log: Log) => Promise<Result>): Promise<Result> {
  try {
    return await work(log);
  } finally {
    await log.close();
  }
}
