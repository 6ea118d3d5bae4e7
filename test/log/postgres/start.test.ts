// Opening a database: its log is created once, and never in an unsuitable database.
import { describe, expect, it } from 'vitest';
import { findPostgresLog } from '../../../src/log/postgres/existing-log.ts';
import { openPostgresStore } from '../../../src/log/postgres/store.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { startPostgres } from '../../kit/postgres-server.ts';
import { atEnd } from '../../kit/temporary.ts';
import { entry } from '../entries.ts';

/** Returns why a start fails, as `chambers doctor` also reports it. */
async function problem(url: string): Promise<string> {
  const [start, probe] = [
    openPostgresStore({ url, connectionsMax: 2 }).then((store) => store.close()),
    findPostgresLog(url),
  ];
  const [started, probed] = await Promise.all([start, probe].map((each) => each.then(() => 'none', String)));
  expect(probed).toBe(started);
  return String(started).replace('Error: ', '');
}

describe('a start', () => {
  it('concurrent starts of several nodes create one log', async () => {
    const url = await temporaryPostgres();
    const stores = await Promise.all(Array.from({ length: 5 }, () => openStore(url)));
    expect(new Set(stores.map(({ log }) => log.logId)).size).toBe(1);
  });

  it.each([
    ['another program’s tables', 'CREATE TABLE films (id int)', 'holds tables of another program'],
    [
      'another program’s meta',
      'CREATE TABLE meta (name text); CREATE TABLE events (); CREATE TABLE registrations ()',
      'holds tables of another program',
    ],
    [
      'no version',
      'CREATE TABLE meta (name text, value text); CREATE TABLE events (); CREATE TABLE registrations ()',
      'holds tables of another program',
    ],
  ])('a start rejects a database with %s', async (_, sql, message) => {
    const url = await temporaryPostgres();
    await execute(url, sql);
    expect(await problem(url)).toMatch(message);
    expect(await problem(url)).not.toMatch('password');
  });

  it.each([
    [99, 'schema 99, newer than schema 7'],
    [5, 'schema 5, which no release wrote'],
  ])('a start rejects schema %i', async (version, message) => {
    const url = await temporaryPostgres();
    await (await openStore(url)).close();
    await execute(url, `UPDATE meta SET value = '${version}' WHERE name = 'schema_version'`);
    expect(await problem(url)).toMatch(message);
  });

  it('a start rejects a log that has moved', async () => {
    const url = await temporaryPostgres();
    await (await openStore(url)).close();
    expect(await problem(url)).toBe('none');
    expect(await findPostgresLog(url)).toMatchObject({ hasSynchronousStandby: false });
    await execute(url, "INSERT INTO meta VALUES ('moved_to', 'chambers.db')");
    expect(await problem(url)).toMatch('its log has moved to chambers.db');
  });

  it('a start rejects a read-only server, a wrong password and a silent host without printing the password', async () => {
    const url = await temporaryPostgres();
    const readOnly = new URL(url);
    readOnly.searchParams.set('options', `${readOnly.searchParams.get('options')} -c default_transaction_read_only=on`);
    expect(await problem(readOnly.href)).toMatch(
      /^cannot open the database postgres:\/\/[^/@]+\/\w+: the server is read-only$/,
    );
    expect(await problem(url.replace(/:\d+\//, ':1/'))).toMatch(/ECONNREFUSED/);
    const missing = new URL(url);
    missing.searchParams.set('options', '-c search_path=nowhere');
    expect(await problem(missing.href)).toMatch('no schema of the search_path exists');
  });

  it('a start rejects a server that would lose accepted moves', async () => {
    const server = await startPostgres({ flags: ['-c', 'fsync=off'] });
    atEnd(server.stop);
    expect(await problem(server.url)).toMatch('fsync=off');
  });

  it('a start uses the first of several hosts that accepts writes', async () => {
    const url = await temporaryPostgres();
    const store = await openStore(url.replace(/@([^/]+)\//, '@127.0.0.1:1,$1/'));
    expect(await store.log.append({ entries: [entry(1, 1)] })).toEqual({ conflicts: new Map(), found: new Map() });
  });
});
