// Failing starts: one clear line, and exit code 1, or 78 for an invalid configuration. The service prints the log's error
// verbatim, so most tests only open the log.
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import { passing } from '../kit/clock.ts';
import { openService } from '../kit/open-service.ts';
import { serve } from '../kit/serve.ts';
import { type Exit, runService, startProcess } from '../kit/service-process.ts';
import { atEnd, temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';

async function rejectedStart(databasePath: string, wrapper: readonly string[] = []): Promise<Exit> {
  const { exited } = await runService({ DATABASE_PATH: databasePath }, wrapper);
  return exited;
}

/** The settings of a service with quorum contracts, without their file. */
const QUORUM = {
  CHAIN: '',
  RPC_URL: 'http://127.0.0.1:1',
  RELAYER_PRIVATE_KEY: `0x${'11'.repeat(32)}`,
  CHAMBER_REGISTRY_ADDRESS: `0x${'11'.repeat(20)}`,
  IDEA_FACTORY_ADDRESS: `0x${'22'.repeat(20)}`,
  CONTRACTS: 'quorum',
  CONTRACTS_FILE: '/nowhere/quorum.json',
};

/** Returns a command prefix that runs the service as another user, because root may write everywhere. */
function asOtherUser(): readonly string[] {
  const isRoot = process.getuid?.() === 0;
  return isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
}

/** EX_CONFIG from sysexits.h. */
const EXIT_CONFIG = 78;

function expectOneLine({ code, stdout, stderr }: Exit, text: string, expected = 1): void {
  expect({ code, stdout }).toEqual({ code: expected, stdout: '' });
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringContaining(text)]);
}

/** Expects a one-line rejection of the log. If another store has the log open, this takes as long as the log waits for the lock. */
function expectRejected(databasePath: string, text: string): void {
  let problem = '';
  try {
    void openSqliteStore(databasePath).close();
  } catch (error) {
    problem = (error as Error).message;
  }
  expect(problem.split('\n')).toEqual([expect.stringContaining(text)]);
}

/** Opens the log in this process, like the service, until the test ends. */
function hold(databasePath: string): void {
  const store = openSqliteStore(databasePath);
  atEnd(() => store.close());
}

async function openOnce(databasePath: string): Promise<void> {
  await openSqliteStore(databasePath).close();
}

function databaseOf(write: (db: Database.Database) => void): string {
  const path = temporaryDatabase();
  const db = new Database(path);
  write(db);
  db.close();
  return path;
}

/** Returns an INSERT by a program that does not know the format. */
function foreignRow(line: string, eventId = 1): string {
  return `INSERT INTO events (position, chamber_id, event_id, line) VALUES (1, 1, ${eventId}, '${line}')`;
}

/** Creates a relative symbolic link in another folder. */
function linkTo(path: string): string {
  const link = join(temporaryFolder(), 'link.db');
  symlinkSync(relative(dirname(link), path), link);
  return link;
}

describe('a failing start', () => {
  it('a start is rejected while another process serves the file, and that process continues', async () => {
    const path = temporaryDatabase();
    const first = await startProcess(path);
    expectOneLine(await rejectedStart(path), 'another process is using it');
    expect((await fetch(`${first.url}/health`)).status).toBe(200);
  });

  it('a start waits for a process that is about to release the file', async () => {
    const path = temporaryDatabase();
    const first = await startProcess(path);
    const next = startProcess(path);
    await sleep(1_000);
    await first.kill('SIGTERM');
    expect((await fetch(`${(await next).url}/health`)).status).toBe(200);
  });

  it.each(['before the link', 'through the link'])(
    'a start through a symbolic link is rejected if the file was created %s',
    async (which) => {
      const path = temporaryDatabase();
      if (which === 'before the link') await openOnce(path);
      const [first, second] = [linkTo(path), linkTo(linkTo(path))];
      hold(first);
      expectRejected(path, 'another process is using it');
      expectRejected(second, 'another process is using it');
    },
  );

  it('a start is rejected if the file has a hard link, in either order', async () => {
    const path = temporaryDatabase();
    const link = join(temporaryFolder(), 'linked.db');
    const first = openSqliteStore(path);
    linkSync(path, link);
    expectRejected(link, `cannot open the database ${link}: the file has 2 names (hard links)`);
    await first.close();
    expectRejected(path, 'the file has 2 names (hard links)');
  });

  it('a start with a write-ahead log but a missing or empty file is rejected, and keeps the write-ahead log', async () => {
    const path = temporaryDatabase();
    const running = temporaryDatabase();
    hold(running);
    const wal = readFileSync(`${running}-wal`);
    expect(wal.length).toBeGreaterThan(0);
    writeFileSync(`${path}-wal`, wal);
    const problem = `the file is missing or empty, but ${path}-wal holds part of it`;
    expectRejected(linkTo(path), problem);
    writeFileSync(path, '');
    expectRejected(linkTo(path), problem);
    expect(readFileSync(`${path}-wal`)).toEqual(wal);
  });

  it('a start takes over the file of a killed process', async () => {
    const path = temporaryDatabase();
    await (await startProcess(path)).kill('SIGKILL');
    const { url } = await startProcess(path);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it('the error names a missing folder', () => {
    expectRejected(join(temporaryFolder(), 'missing', 'chambers.db'), 'does not exist');
  });

  it('the error names a database of a newer version', () => {
    const path = databaseOf((db) => db.pragma('user_version = 99'));
    expectRejected(path, 'the file has schema 99, newer than');
  });

  it('the error names a database of another program, which is not changed', () => {
    const path = databaseOf((db) => db.exec('CREATE TABLE other (x)'));
    expectRejected(path, 'the file is a database of another program');
    const db = new Database(path, { readonly: true });
    expect(db.prepare('SELECT name FROM sqlite_schema').pluck().all()).toEqual(['other']);
    db.close();
  });

  it('the error names a file that is not a database', () => {
    const path = temporaryDatabase();
    writeFileSync(path, 'Dear diary, today I was opened as a database. '.repeat(100));
    expectRejected(path, 'file is not a database');
  });

  it('the error names a path that is a folder', () => {
    const path = temporaryDatabase();
    mkdirSync(path);
    expectRejected(path, `cannot open the database ${path}: not a regular file`);
  });

  it('the error names a circular link', () => {
    const path = temporaryDatabase();
    symlinkSync(path, path);
    expectRejected(path, `cannot open the database ${path}: ELOOP`);
  });

  it('the error names a folder that cannot be written', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o555);
    expectOneLine(await rejectedStart(join(folder, 'chambers.db'), asOtherUser()), 'cannot open');
  });

  it('the error names a file that cannot be written', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o777);
    const path = join(folder, 'chambers.db');
    await openOnce(path);
    for (const suffix of ['.lock', '-shm']) rmSync(path + suffix);
    chmodSync(path, 0o444);
    expectOneLine(await rejectedStart(path, asOtherUser()), 'chambers.db cannot be written (EACCES)');
  });

  it.each([
    [
      'a clock beyond the range of times',
      "INSERT INTO meta VALUES ('clock_high_water_mark', '9000000000000000')",
      'not a time',
    ],
    ['an invalid log id', "UPDATE meta SET value = 'a\nb' WHERE name = 'log_id'", 'the log has no id of 32 hex'],
    ['a line without a time', foreignRow('{"ts":"yesterday"}'), 'the newest event has no timestamp'],
    ['a line from the far future', foreignRow('{"ts":"+100000-01-01T00:00:00.000Z"}'), 'has no timestamp'],
    ['a line that is not JSON', foreignRow('hello'), 'the newest event has no timestamp'],
    ['a negative schema', 'PRAGMA user_version = -3', 'a database of another program'],
    ['a missing table', 'DROP TABLE ideas', 'no such table: ideas'],
  ])('the error names %s that another program wrote', async (_title, sql, text) => {
    const path = temporaryDatabase();
    await openOnce(path);
    const db = new Database(path);
    db.exec(sql);
    db.close();
    expectRejected(path, text);
  });

  it.each([
    ['a variable', { PORT: 'x' }, 'PORT: must be an integer'],
    ['a missing ban list', { BAN_LIST_FILE: '/nowhere/banned' }, 'cannot read the access list /nowhere/banned'],
  ])('the error of a start with exit code 78 names %s', async (_title, settings, text) => {
    const { exited } = await runService({ DATABASE_PATH: ':memory:', ...settings });
    expectOneLine(await exited, text, EXIT_CONFIG);
  });

  it('the error names missing contract settings as part of the configuration', async () => {
    await expect(openService(QUORUM, { clock: passing(Date.now) })).rejects.toMatchObject({
      name: 'ConfigError',
      message: expect.stringContaining('CONTRACTS_FILE'),
    });
  });

  it.each([24, 100])('the error names a limit of %i open files', async (limit) => {
    const wrapper = ['/bin/sh', '-c', `ulimit -n ${limit}; exec "$0" "$@"`];
    const { exited } = await runService({ DATABASE_PATH: temporaryDatabase() }, wrapper);
    expectOneLine(await exited, `the limit of open files is ${limit}`, EXIT_CONFIG);
  });

  it('the error names the address of a port in use', async () => {
    const url = await serve(() => {});
    const { exited } = await runService({ DATABASE_PATH: ':memory:', PORT: new URL(url).port });
    expectOneLine(await exited, 'cannot listen on 127.0.0.1');
  });
});
