// What the service says when it cannot start: one clear line and exit code 1.
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { type Exit, runService, startProcess } from '../kit/service-process.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';

async function refusal(databasePath: string, wrapper: readonly string[] = []): Promise<Exit> {
  const { exited } = await runService({ DATABASE_PATH: databasePath }, wrapper);
  return exited;
}

/** Root may write everywhere, so it runs the service as somebody else. */
function asNobody(): readonly string[] {
  const isRoot = process.getuid?.() === 0;
  return isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
}

function expectOneLine({ code, stdout, stderr }: Exit, text: string): void {
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringContaining(text)]);
}

function databaseOf(write: (db: Database.Database) => void): string {
  const path = temporaryDatabase();
  const db = new Database(path);
  write(db);
  db.close();
  return path;
}

/** A symbolic link in a folder of its own, relative as `ln -s` makes most. */
function linkTo(path: string): string {
  const link = join(temporaryFolder(), 'link.db');
  symlinkSync(relative(dirname(link), path), link);
  return link;
}

describe('a start that cannot succeed', () => {
  it('is refused while another process serves the file, which goes on', async () => {
    const path = temporaryDatabase();
    const first = await startProcess(path);
    expectOneLine(await refusal(path), 'another process is using it');
    expect((await fetch(`${first.url}/health`)).status).toBe(200);
  });

  it.each(['there before it', 'made by it'])('is refused by a symbolic link to a file that was %s', async (which) => {
    const path = temporaryDatabase();
    if (which === 'there before it') await (await startProcess(path)).kill('SIGTERM');
    const [first, second] = [linkTo(path), linkTo(linkTo(path))];
    await startProcess(first);
    for (const other of [path, second]) expectOneLine(await refusal(other), 'another process is using it');
  });

  it('is refused by a hard link, whoever came first', async () => {
    const path = temporaryDatabase();
    const link = join(temporaryFolder(), 'linked.db');
    const first = await startProcess(path);
    linkSync(path, link);
    expectOneLine(await refusal(link), `cannot open the database ${link}: the file has 2 names (hard links)`);
    await first.kill('SIGTERM');
    expectOneLine(await refusal(path), 'the file has 2 names (hard links)');
  });

  it.each(['missing', 'empty'])(
    'is refused where the file is %s beside its write-ahead log, which stays',
    async (which) => {
      const path = temporaryDatabase();
      await (await startProcess(path)).kill('SIGKILL');
      const wal = readFileSync(`${path}-wal`);
      expect(wal.length).toBeGreaterThan(0);
      rmSync(path);
      if (which === 'empty') writeFileSync(path, '');
      expectOneLine(await refusal(linkTo(path)), `the file is missing or empty, but ${path}-wal holds part of it`);
      expect(readFileSync(`${path}-wal`)).toEqual(wal);
    },
  );

  it('takes the file over from a process that was killed', async () => {
    const path = temporaryDatabase();
    await (await startProcess(path)).kill('SIGKILL');
    const { url } = await startProcess(path);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it('names a folder that is missing', async () => {
    expectOneLine(await refusal(join(temporaryFolder(), 'missing', 'chambers.db')), 'does not exist');
  });

  it('names a database of a newer version', async () => {
    const path = databaseOf((db) => db.pragma('user_version = 99'));
    expectOneLine(await refusal(path), 'the file has schema 99, newer than');
  });

  it('names a database of another program, and leaves it as it was', async () => {
    const path = databaseOf((db) => db.exec('CREATE TABLE other (x)'));
    expectOneLine(await refusal(path), 'the file is a database of another program');
    const db = new Database(path, { readonly: true });
    expect(db.prepare('SELECT name FROM sqlite_schema').pluck().all()).toEqual(['other']);
    db.close();
  });

  it('names a file that is no database', async () => {
    const path = temporaryDatabase();
    writeFileSync(path, 'Dear diary, today I was opened as a database. '.repeat(100));
    expectOneLine(await refusal(path), 'file is not a database');
  });

  it('names a path that is a folder', async () => {
    const path = temporaryDatabase();
    mkdirSync(path);
    expectOneLine(await refusal(path), `cannot open the database ${path}: not a regular file`);
  });

  it('names a link that leads to itself', async () => {
    const path = temporaryDatabase();
    symlinkSync(path, path);
    expectOneLine(await refusal(path), `cannot open the database ${path}: ELOOP`);
  });

  it('names a folder that cannot be written', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o555);
    expectOneLine(await refusal(join(folder, 'chambers.db'), asNobody()), 'cannot open');
  });

  it('names a file that cannot be written', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o777);
    const path = join(folder, 'chambers.db');
    await (await startProcess(path)).kill('SIGTERM');
    rmSync(`${path}.lock`);
    chmodSync(path, 0o444);
    expectOneLine(await refusal(path, asNobody()), 'attempt to write a readonly database');
  });

  it('names what is in the way of the port', async () => {
    const first = await startProcess(':memory:');
    const { exited } = await runService({ DATABASE_PATH: ':memory:', PORT: new URL(first.url).port });
    expectOneLine(await exited, 'cannot listen on 127.0.0.1');
  });
});
