// Databases on the PostgreSQL server of the test run: each is a schema of its own, dropped at the test's end.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { openPostgresLog, type PostgresLog, type PostgresLogOptions } from '../../src/log/postgres/postgres-log.ts';
import { atEnd } from './temporary.ts';

/** The URL of an empty database. */
export async function temporaryPostgres(serverUrl: string = inject('postgresUrl')): Promise<string> {
  const schema = `test_${randomBytes(6).toString('hex')}`;
  await execute(serverUrl, `CREATE SCHEMA ${schema}`);
  atEnd(async () => void (await execute(serverUrl, `DROP SCHEMA ${schema} CASCADE`).catch(() => {})));
  const url = new URL(serverUrl);
  url.searchParams.set('options', `-c search_path=${schema}`);
  return url.href;
}

/** Closed at the test's end. */
export async function openLog(url: string, options: Partial<PostgresLogOptions> = {}): Promise<PostgresLog> {
  const log = await openPostgresLog({ url, connectionsMax: 4, ...options });
  atEnd(() => log.close());
  return log;
}

/** As another program would. */
export async function execute(url: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
