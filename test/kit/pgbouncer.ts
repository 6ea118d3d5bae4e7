// PgBouncer in front of a test's database.
import { startPgBouncer } from './pgbouncer-process.ts';
import { atEnd, temporaryFolder } from './temporary.ts';

/** Returns the URL of the same database through a pooler in session mode. The pooler ends with the test. */
export async function throughPgBouncer(databaseUrl: string): Promise<string> {
  const { url, kill } = await startPgBouncer({ databaseUrl, mode: 'session', folder: temporaryFolder() });
  atEnd(kill);
  return url;
}
