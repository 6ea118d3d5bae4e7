// A database stops being the log of a running node, which checks each connection before use and each write in its statement.
import { expect, it } from 'vitest';
import { newLogId } from '../../../src/log/log-id.ts';
import { writeWholeLog } from '../../../src/log/open-log.ts';
import type { PostgresStore } from '../../../src/log/postgres/store.ts';
import { renewLog } from '../../../src/log/sql/maintenance.ts';
import { execute, openStore, ownDatabase, temporaryPostgres } from '../../kit/postgres.ts';
import { entry, NONE } from '../entries.ts';

const schemaOf = (url: string) => /search_path=(\w+)/.exec(new URL(url).searchParams.get('options') ?? '')?.[1];

async function endSessions(url: string): Promise<void> {
  await execute(
    url,
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'chambers' AND datname = current_database()",
  );
}

async function expectRefused({ log, meta }: PostgresStore, detail: string): Promise<void> {
  const unavailable = { code: 'FORUM_ERR_UNAVAILABLE', message: expect.stringContaining(detail) };
  await expect(log.append({ entries: [entry(1, 2)] })).rejects.toMatchObject(unavailable);
  await expect(meta.persistClock(Date.now())).rejects.toMatchObject(unavailable);
  expect(meta.writeFailure).toMatchObject(unavailable);
  await expect(log.lastEventId(1)).rejects.toMatchObject({ code: 'FORUM_ERR_UNAVAILABLE' });
}

it('a node writes nothing to a database that now holds a different log, on open or new connections', {
  timeout: 60_000,
}, async () => {
  const database = await ownDatabase();
  const [url, otherUrl] = [await temporaryPostgres(database), await temporaryPostgres(database)];
  const problems: string[] = [];
  const onChecked = (problem: Error | undefined) => void (problem && problems.push(problem.message));
  const [store, other] = [await openStore(url, { onChecked }), await openStore(otherUrl)];
  expect(await store.log.append({ entries: [entry(1, 1)] })).toEqual(NONE);
  expect(await other.log.append({ entries: [entry(1, 1)] })).toEqual(NONE);
  // A restore in place does the same.
  const [mine, others] = [schemaOf(url), schemaOf(otherUrl)];
  await execute(url, `ALTER SCHEMA ${mine} RENAME TO ${mine}_away; ALTER SCHEMA ${others} RENAME TO ${mine}`);
  const ids = `the database holds log ${other.log.logId}, but this service writes log ${store.log.logId}`;
  await expectRefused(store, ids);
  await endSessions(url);
  await expectRefused(store, ids);
  expect(await execute(url, 'SELECT count(*)::int AS lines FROM events')).toEqual([{ lines: 1 }]);
  expect(problems).toContain(ids);
  await execute(url, `ALTER SCHEMA ${mine} RENAME TO ${others}; ALTER SCHEMA ${mine}_away RENAME TO ${mine}`);
  expect(await store.log.append({ entries: [entry(1, 2)] })).toEqual(NONE);
});

it('a node adds no more lines to a log that was renewed while it ran', { timeout: 60_000 }, async () => {
  const url = await temporaryPostgres(await ownDatabase());
  const store = await openStore(url);
  await store.log.append({ entries: [entry(1, 1)] });
  const { logId } = await writeWholeLog(url, (log) => renewLog(log, { logId: newLogId() }));
  await expectRefused(store, `log ${logId}, but this service writes log ${store.log.logId}`);
  expect(await execute(url, 'SELECT count(*)::int AS lines FROM events')).toEqual([{ lines: 1 }]);
});

it.each([
  ['a newer schema', "UPDATE meta SET value = '99' WHERE name = 'schema_version'", 'schema 99, newer than schema'],
  ['a log that has moved', "INSERT INTO meta VALUES ('moved_to', 'chambers.db')", 'its log has moved to chambers.db'],
  ['no log', 'DROP TABLE meta', 'the database holds no log, but this service writes log'],
])('a node does not use a new connection to %s', { timeout: 60_000 }, async (_, sql, message) => {
  const url = await temporaryPostgres(await ownDatabase());
  const problems: string[] = [];
  const store = await openStore(url, { onChecked: (problem) => void (problem && problems.push(problem.message)) });
  await execute(url, sql);
  await endSessions(url);
  await expect(store.log.append({ entries: [entry(1, 1)] })).rejects.toMatchObject({ code: 'FORUM_ERR_UNAVAILABLE' });
  expect(problems).toContainEqual(expect.stringContaining(message));
  expect(await execute(url, 'SELECT FROM events')).toEqual([]);
});
