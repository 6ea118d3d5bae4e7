// Opening a database: its log is created once, and never in a database that can't hold it.
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { ALL_CHAMBERS } from '../../../src/log/log.ts';
import { findPostgresLog } from '../../../src/log/postgres/found-log.ts';
import { openPostgresStore } from '../../../src/log/postgres/store.ts';
import { execute, openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { startPostgres } from '../../kit/postgres-server.ts';
import { runService } from '../../kit/service-process.ts';
import { atEnd } from '../../kit/temporary.ts';
import { eventually } from '../../kit/until.ts';
import { entry } from '../entries.ts';

const ANN = 'did:key:zAnn';
const SCHEMA_4 = 'ALTER TABLE unplaced_events RENAME TO unplaced; DROP TABLE tiles, checkpoints;';
const SCHEMA_3 = `${SCHEMA_4}
  ALTER TABLE snapshots RENAME stream TO chamber_id; ALTER TABLE snapshots ALTER chamber_id TYPE bigint USING chamber_id::bigint;`;
/** The sessions that upgrade a schema: one that waits has this statement. */
const UPGRADES = "SELECT FROM pg_stat_activity WHERE state <> 'idle' AND query LIKE 'UPDATE meta SET value%'";

/** Why a start ends, which is what `chambers doctor` reports. */
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
  it('of several nodes at once makes one log', async () => {
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
  ])('rejects %s', async (_, sql, message) => {
    const url = await temporaryPostgres();
    await execute(url, sql);
    expect(await problem(url)).toMatch(message);
    expect(await problem(url)).not.toMatch('password');
  });

  it('rejects a newer schema', async () => {
    const url = await temporaryPostgres();
    await (await openStore(url)).close();
    await execute(url, "UPDATE meta SET value = '99' WHERE name = 'schema_version'");
    expect(await problem(url)).toMatch('schema 99, newer than schema 6');
  });

  it('rejects a log that has moved', async () => {
    const url = await temporaryPostgres();
    await (await openStore(url)).close();
    expect(await problem(url)).toBe('none');
    expect(await findPostgresLog(url)).toMatchObject({ hasSynchronousStandby: false });
    await execute(url, "INSERT INTO meta VALUES ('moved_to', 'chambers.db')");
    expect(await problem(url)).toMatch('its log has moved to chambers.db');
  });

  it('upgrades schema 3, which had snapshots of chambers only', async () => {
    const url = await temporaryPostgres();
    const snapshot = { eventId: 2, leaf: Buffer.alloc(32), state: '{}' };
    const before = await openStore(url);
    await before.log.writeSnapshot(1, snapshot);
    await before.close();
    await execute(url, `${SCHEMA_3} UPDATE meta SET value = '3' WHERE name = 'schema_version'`);
    const store = await openStore(url);
    expect(await store.log.append({ entries: [entry(1, 1, { lease: 'not held' })] })).toEqual({
      moved: new Map([
        [1, 0],
        [ALL_CHAMBERS, 0],
      ]),
      found: new Map(),
    });
    await store.log.writeSnapshot(ANN, snapshot);
    expect([await store.log.readSnapshot(1), await store.log.readSnapshot(ANN)]).toEqual([snapshot, snapshot]);
    expect(await execute(url, "SELECT value FROM meta WHERE name = 'schema_version'")).toEqual([{ value: '6' }]);
    expect(
      await execute(
        url,
        "SELECT indexname FROM pg_indexes WHERE tablename = 'unplaced_events' AND schemaname = current_schema()",
      ),
    ).toEqual([]);
  });

  it('upgrades schema 4, whose lines of accounts get places after those of chambers', async () => {
    const url = await temporaryPostgres();
    const before = await openStore(url);
    const accounts = Array.from({ length: 12_000 }, (_, i) => entry(`did:key:z${i}`, 1));
    await before.log.append({ entries: [entry(1, 1), entry(1, 2), ...accounts, entry('did:key:z7', 2)] });
    await before.log.readAll(0, 1);
    await before.close();
    await execute(
      url,
      `${SCHEMA_4} DELETE FROM places WHERE stream >= ':'; UPDATE meta SET value = '4' WHERE name = 'schema_version'`,
    );
    const store = await openStore(url);
    expect(await store.log.lastPlace()).toBe(12_003);
    expect([await store.log.placeOf(1, 1), await store.log.placeOf(1, 2)]).toEqual([1, 2]);
    const places = (await execute(url, 'SELECT place::int, stream, event_id::int FROM places ORDER BY place')) as {
      readonly place: number;
    }[];
    expect(places.map(({ place }) => place)).toEqual(Array.from({ length: 12_003 }, (_, i) => i + 1));
    const z7 = [await store.log.placeOf('did:key:z7', 1), await store.log.placeOf('did:key:z7', 2)] as number[];
    expect(z7[1]).toBe((z7[0] ?? 0) + 1);
    expect(await execute(url, "SELECT FROM meta WHERE name = 'placed_through'")).toEqual([]);
  });

  it('that is killed in the middle of the upgrade leaves schema 3, which the next start upgrades', async () => {
    const url = await temporaryPostgres();
    const snapshot = { eventId: 2, leaf: Buffer.alloc(32), state: '{}' };
    const before = await openStore(url);
    await before.log.writeSnapshot(1, snapshot);
    await before.close();
    await execute(url, `${SCHEMA_3} UPDATE meta SET value = '3' WHERE name = 'schema_version'`);
    const columns = () =>
      execute(
        url,
        `SELECT column_name, data_type FROM information_schema.columns
         WHERE table_name = 'snapshots' AND table_schema = current_schema() ORDER BY ordinal_position`,
      );
    const version = () => execute(url, "SELECT value FROM meta WHERE name = 'schema_version'");
    const old = await columns();
    // The last statement of the upgrade, after the table has changed, waits for this row.
    const holder = new pg.Client({ connectionString: url });
    await holder.connect();
    await holder.query("BEGIN; SELECT FROM meta WHERE name = 'schema_version' FOR UPDATE");
    const { child, exited } = await runService({ DATABASE_URL: url });
    const waiting = () => execute(url, `${UPGRADES} AND wait_event_type = 'Lock'`);
    await eventually(async () => expect(await waiting()).toHaveLength(1), 20_000);
    child.kill('SIGKILL');
    expect((await exited).signal).toBe('SIGKILL');
    await holder.end();
    await eventually(async () => expect(await execute(url, UPGRADES)).toEqual([]), 20_000);
    expect([await columns(), await version()]).toEqual([old, [{ value: '3' }]]);
    const store = await openStore(url);
    expect([await store.log.readSnapshot(1), await version()]).toEqual([snapshot, [{ value: '6' }]]);
  });

  it('rejects a read-only server, a wrong password and a host that does not respond, without the password', async () => {
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

  it('rejects a server that would lose accepted moves', async () => {
    const server = await startPostgres({ flags: ['-c', 'fsync=off'] });
    atEnd(server.stop);
    expect(await problem(server.url)).toMatch('fsync=off');
  });

  it('takes the first of several hosts that takes writes', async () => {
    const url = await temporaryPostgres();
    const store = await openStore(url.replace(/@([^/]+)\//, '@127.0.0.1:1,$1/'));
    expect(await store.log.append({ entries: [entry(1, 1)] })).toEqual({ moved: new Map(), found: new Map() });
  });
});
