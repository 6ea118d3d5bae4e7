// Databases on a server that can't hold the log: doctor and start say the same sentence, with the same exit code.
import { expect, it } from 'vitest';
import { examine } from '../../../src/doctor/doctor.ts';
import { execute, openStore, ownDatabase, ownRole, temporaryPostgres } from '../../kit/postgres.ts';
import { type Environment, expectSame, start } from '../../kit/start-and-doctor.ts';

async function withTables(sql: string): Promise<Environment> {
  const DATABASE_URL = await ownDatabase();
  await execute(DATABASE_URL, sql);
  return { DATABASE_URL };
}

/** The log of an earlier release, with a role that may create tables and does not own these. */
async function ofOtherOwner(): Promise<Environment> {
  const { owner, role, url } = await ownRole();
  await (await openStore(owner)).close();
  await execute(
    owner,
    `UPDATE meta SET value = '4' WHERE name = 'schema_version'; ALTER TABLE unplaced_events RENAME TO unplaced;
     DROP TABLE tiles, checkpoints; GRANT CREATE ON SCHEMA public TO ${role};
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role}`,
  );
  return { DATABASE_URL: url };
}

const OTHER_META = 'CREATE TABLE meta (name text); CREATE TABLE events (); CREATE TABLE registrations ()';

it.each<readonly [string, () => Promise<Environment>, string | RegExp]>([
  [
    'a server that is away',
    async () => ({ DATABASE_URL: 'postgres://u:p@127.0.0.1:1/d' }),
    /DATABASE_URL: .* ECONNREF/,
  ],
  ['tables of another program', () => withTables('CREATE TABLE films ()'), 'tables of another program'],
  ['another program’s meta', () => withTables(OTHER_META), 'tables of another program'],
  ['a name of ours that is taken', () => withTables('CREATE SEQUENCE events'), 'is named events in the schema public'],
  [
    'a type with a name of ours',
    () => withTables("CREATE TYPE meta AS ENUM ('a')"),
    'is named meta in the schema public',
  ],
  ['a role without rights', async () => ({ DATABASE_URL: (await ownRole()).url }), 'GRANT CREATE ON SCHEMA public'],
  ['a role that may not migrate', ofOtherOwner, /which only its owner \w+ may, and the role is \w+: GRANT \w+ TO/],
])('doctor and start say the same of %s', async (_title, make, sentence) => {
  await expectSame(await make(), 1, sentence);
});

it('doctor and start warn that a log of an earlier release is migrated, and only the start does it', async () => {
  const DATABASE_URL = await temporaryPostgres();
  await (await openStore(DATABASE_URL)).close();
  await execute(DATABASE_URL, "UPDATE meta SET value = '5' WHERE name = 'schema_version'");
  const env = { CHAIN: 'none', PORT: '0', DATABASE_URL };
  const detail = expect.stringContaining('the start migrates it');
  expect(await examine(env)).toContainEqual(expect.objectContaining({ level: 'warning', detail }));
  const version = () => execute(DATABASE_URL, "SELECT value FROM meta WHERE name = 'schema_version'");
  expect(await version()).toEqual([{ value: '5' }]);
  const { exitCode, warnings } = await start(env);
  expect({ exitCode, warnings }).toEqual({ exitCode: 0, warnings: expect.arrayContaining([detail]) });
  expect(await version()).toEqual([{ value: '6' }]);
});
