// The store of a test's house or service: with TEST_STORE=postgres the first one of a test that names no file is in PostgreSQL.
import { beforeEach } from 'vitest';
import type { ForumLog } from '../../src/log/log.ts';
import { openSqliteLog } from '../../src/log/sqlite/sqlite-log.ts';

const { TEST_STORE } = process.env;
export const IS_ON_POSTGRES = TEST_STORE === 'postgres';

/** Opened before the test, because a house is created synchronously. */
let spare: ForumLog | undefined;

if (IS_ON_POSTGRES) {
  beforeEach(async () => {
    const { openLog, temporaryPostgres } = await import('./postgres.ts');
    spare = await openLog(await temporaryPostgres());
  });
}

export function openTestLog(path: string | undefined): ForumLog {
  if (path !== undefined || spare === undefined) return openSqliteLog(path ?? ':memory:');
  const log = spare;
  spare = undefined;
  return log;
}

/** Settings of a service that name its store. */
export async function storeSettings(): Promise<Readonly<Record<string, string>>> {
  if (!IS_ON_POSTGRES) return { DATABASE_PATH: ':memory:' };
  const { temporaryPostgres } = await import('./postgres.ts');
  return { DATABASE_URL: await temporaryPostgres() };
}
