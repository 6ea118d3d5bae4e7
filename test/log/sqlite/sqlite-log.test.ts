// The log in its file, which one process at a time can open for writing.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { migrateDatabase } from '../../../src/log/sqlite/database-file.ts';
import { openReader } from '../../../src/log/sqlite/reader.ts';
import { SCHEMA_VERSION } from '../../../src/log/sqlite/schema.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { atEnd, temporaryDatabase, temporaryFolder } from '../../kit/temporary.ts';
import { asSchema2, entry, foreignConnection, openLog } from '../entries.ts';

describe('a reopened log', () => {
  it('a reopened log keeps the persisted clock, even if an earlier release wrote it', async () => {
    const path = temporaryDatabase();
    const store = openSqliteStore(path);
    await store.log.append({ entries: [entry(1, 1)] });
    await store.meta.persistClock(1_000);
    await store.close();
    const again = openSqliteStore(path);
    expect(again.meta.lastAt).toBe(1_000);
    await again.close();
    asSchema2(path);
    await migrateDatabase(path);
    const older = openLog(path);
    expect(older.meta.lastAt).toBe(1_000);
  });
});

describe('a file', () => {
  it('a file has one writer within a process', async () => {
    const path = temporaryDatabase();
    const store = openSqliteStore(path);
    expect(() => openSqliteStore(path)).toThrow('another process is using it');
    await store.close();
    await openSqliteStore(path).close();
  });

  it('a file has one writer among processes, and the kill of a writer releases it', async () => {
    const path = temporaryDatabase();
    const holder = await holdLock(`${path}.lock`);
    expect(() => openSqliteStore(path)).toThrow('another process is using it');
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    openLog(path);
    await expect(holdLock(`${path}.lock`)).rejects.toThrow('SQLITE_BUSY');
  });
});

/** Starts a process that takes the lock like a service. */
async function holdLock(path: string): Promise<ChildProcess> {
  const sqlite = createRequire(import.meta.url).resolve('better-sqlite3');
  const script = `const lock = new (require(${JSON.stringify(sqlite)}))(process.argv[1], { timeout: 0 });
    lock.pragma('locking_mode = EXCLUSIVE'); lock.exec('BEGIN EXCLUSIVE'); console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['-e', script, path], { stdio: ['ignore', 'pipe', 'pipe'] });
  atEnd(() => void child.kill('SIGKILL'));
  let complaint = '';
  child.stderr.on('data', (chunk) => {
    complaint += chunk;
  });
  const held = once(child.stdout, 'data').then(() => child);
  return Promise.race([held, once(child, 'exit').then(() => Promise.reject(new Error(complaint)))]);
}

describe('a file that is not a log', () => {
  it('another program’s database is rejected with a one-line error', () => {
    const path = temporaryDatabase();
    foreignConnection(path).exec('CREATE TABLE notes (text)');
    expect(() => openSqliteStore(path)).toThrow(/^cannot open the database .*another program$/);
  });

  it.each([1, 3, SCHEMA_VERSION])('another program’s database with version %i is rejected', (version) => {
    const path = temporaryDatabase();
    const db = foreignConnection(path);
    db.exec(`CREATE TABLE events (id, line); CREATE TABLE meta (name, value); PRAGMA user_version = ${version}`);
    const before = db.prepare('SELECT * FROM sqlite_schema').all();
    expect(() => openSqliteStore(path)).toThrow(/^cannot open the database .*another program$/);
    expect(() => openReader(path)).toThrow(/^cannot read the database .*another program$/);
    expect(db.prepare('SELECT * FROM sqlite_schema').all()).toEqual(before);
  });

  it('a file whose newest event has no timestamp is rejected', async () => {
    const path = temporaryDatabase();
    await openSqliteStore(path).close();
    foreignConnection(path).exec("INSERT INTO events (position, chamber_id, event_id, line) VALUES (1, 1, 1, 'x')");
    expect(() => openSqliteStore(path)).toThrow(/^cannot open the database .*no timestamp.*chambers fsck/);
  });

  it('a file that a newer version wrote is rejected', () => {
    const path = temporaryDatabase();
    foreignConnection(path).pragma('user_version = 99');
    expect(() => openSqliteStore(path)).toThrow(/^cannot open the database .*schema 99/);
  });

  it('a file that is not a database, or whose folder is missing, is rejected', () => {
    const path = temporaryDatabase();
    writeFileSync(path, 'This is a text and not a database, despite its name. '.repeat(100));
    expect(() => openSqliteStore(path)).toThrow(/^cannot open the database/);
    expect(() => openSqliteStore(`${temporaryFolder()}/missing/chambers.db`)).toThrow(/^cannot open/);
  });
});
