// Opens a log for a program by its place: the path of an SQLite file, or a postgres:// URL. Each function throws an Error of one line.
// Drivers are loaded on demand, because loading them would slow the other commands.
import { resolve } from 'node:path';
import { describeDatabase, isPostgres } from './postgres/database-url.ts';
import { type CopySummary, moveLog } from './sql/copy.ts';
import type { WholeLog, WritableLog } from './sql/whole-log.ts';

/** Runs `read` on the log as of one moment, even while a service runs on it. */
export async function readWholeLog<Result>(place: string, read: (log: WholeLog) => Promise<Result>): Promise<Result> {
  return closing(
    isPostgres(place) ? await (await postgres()).readPostgresLog(place) : (await sqlite()).readSqliteLog(place),
    read,
  );
}

/** Runs `write` on the log, which commits; no second program writes at the same time. */
export async function writeWholeLog<Result>(
  place: string,
  write: (log: WritableLog) => Promise<Result>,
): Promise<Result> {
  return closing(
    isPostgres(place) ? await (await postgres()).openPostgresLog(place) : (await sqlite()).openSqliteLog(place),
    write,
  );
}

/** The log continues in another database, which must be empty or not exist, and then takes no more events in this one. */
export function copyLog(from: string, to: string): Promise<CopySummary> {
  const place = isPostgres(to) ? describeDatabase(to) : resolve(to);
  const openTarget = async () =>
    isPostgres(to) ? (await postgres()).createPostgresLog(to) : (await sqlite()).createSqliteLog(to);
  return writeWholeLog(from, (source) => moveLog({ source, openTarget, place }));
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
