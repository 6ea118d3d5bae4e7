// Databases that are unfit for the log: doctor and start report the same sentence and exit code.
import { it } from 'vitest';
import { execute, ownDatabase, ownRole } from '../../kit/postgres.ts';
import { type Environment, expectSame } from '../../kit/start-and-doctor.ts';

async function withTables(sql: string): Promise<Environment> {
  const DATABASE_URL = await ownDatabase();
  await execute(DATABASE_URL, sql);
  return { DATABASE_URL };
}

const OTHER_META = 'CREATE TABLE meta (name text); CREATE TABLE events (); CREATE TABLE registrations ()';

it.each<readonly [string, () => Promise<Environment>, string | RegExp]>([
  [
    'an unreachable server',
    async () => ({ DATABASE_URL: 'postgres://u:p@127.0.0.1:1/d' }),
    /DATABASE_URL: .* ECONNREF/,
  ],
  ['tables of another program', () => withTables('CREATE TABLE films ()'), 'tables of another program'],
  ['another program’s meta', () => withTables(OTHER_META), 'tables of another program'],
  ['a taken table name', () => withTables('CREATE SEQUENCE events'), 'uses the name events in the schema public'],
  [
    'a type with the name of a table',
    () => withTables("CREATE TYPE meta AS ENUM ('a')"),
    'uses the name meta in the schema public',
  ],
  ['a role without rights', async () => ({ DATABASE_URL: (await ownRole()).url }), 'GRANT CREATE ON SCHEMA public'],
])('doctor and start report the same error for %s', async (_title, make, sentence) => {
  await expectSame(await make(), 1, sentence);
});
