// The store of a test's service. With TEST_STORE=postgres, the first store of a test that names no file is in PostgreSQL.
import { beforeEach } from 'vitest';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import type { Store } from '../../src/log/store.ts';

const { TEST_STORE } = process.env;
export const IS_ON_POSTGRES = TEST_STORE === 'postgres';

let sqliteOnly: string | undefined;

/** Skips the tests of a file on PostgreSQL, for the given reason. */
export function onSqliteOnly(reason: string): void {
  sqliteOnly = reason;
}

/** A store opened before each test, because a service is created synchronously. */
let spare: Store | undefined;

if (IS_ON_POSTGRES) {
  beforeEach(async ({ skip }) => {
    if (sqliteOnly !== undefined) return skip(sqliteOnly);
    const { openStore, temporaryPostgres } = await import('./postgres.ts');
    spare = await openStore(await temporaryPostgres());
  });
}

export function openTestStore(path: string | undefined): Store {
  if (path !== undefined || spare === undefined) return openSqliteStore(path ?? ':memory:');
  const store = spare;
  spare = undefined;
  return store;
}

/** Returns the settings for a service's store. */
export async function storeSettings(): Promise<Readonly<Record<string, string>>> {
  if (!IS_ON_POSTGRES) return { DATABASE_PATH: ':memory:' };
  const { temporaryPostgres } = await import('./postgres.ts');
  return { DATABASE_URL: await temporaryPostgres() };
}
