// fsck, rebuild and backup of SQLite files, some of them changed by a program that drops the triggers first.
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { copyKeyFileForLog, defaultKeyFile } from '../../../src/keys/key-file.ts';
import { writeWholeLog } from '../../../src/log/open-log.ts';
import { resetClock } from '../../../src/log/sql/maintenance.ts';
import { backupDatabase } from '../../../src/log/sqlite/backup.ts';
import { sqlOn } from '../../../src/log/sqlite/connection.ts';
import { migrateDatabase } from '../../../src/log/sqlite/database-file.ts';
import { faultsOf, fsckLog, rebuildLog } from '../../durability/log-book.ts';
import { HOUR, TestClock } from '../../kit/clock.ts';
import { subscribe } from '../../kit/consumers.ts';
import { debating, run } from '../../kit/service.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';
import { dropTriggers, foreignConnection, tamper } from '../entries.ts';
import { describeMaintenance, writtenLog } from '../maintenance.ts';

describeMaintenance({
  move: async (path) => path,
  async tamper(path, sql, ...values) {
    const db = foreignConnection(path);
    dropTriggers(db);
    const rows = await sqlOn(db).query<Record<string, unknown>>(sql, values);
    db.close();
    return rows;
  },
  toColumn: (line) => line,
  hasPositions: true,
});

/** A service whose log has an account, a chamber with a member, and a comment. */
async function serving() {
  const path = temporaryDatabase();
  const running = await run({ DATABASE_PATH: path });
  const { id, debate } = await debating(running);
  await debate('one');
  return { path, running, id, debate };
}

describe('fsck of a file', () => {
  it('fsck leaves the write-ahead log of an emptied file unchanged, and reports it', async () => {
    const { path, running } = await serving();
    const wal = readFileSync(`${path}-wal`);
    await running.stop();
    writeFileSync(path, '');
    writeFileSync(`${path}-wal`, wal);
    await expect(faultsOf(path)).rejects.toThrow(/^cannot read the database .*-wal holds part of it/);
    expect(readFileSync(`${path}-wal`)).toEqual(wal);
  });

  it('fsck can run beside the service, and rebuild cannot', async () => {
    const { path, running } = await serving();
    const { logId } = running.service.forum.store.log;
    expect(await fsckLog(path)).toEqual({ logId, events: 4, chambers: 1, accounts: 1, faults: 0 });
    await expect(rebuildLog(path)).rejects.toThrow('another process is using it');
  });

  it('fsck names an index that lacks an event, and rebuild fixes it', async () => {
    const path = await writtenLog();
    const db = new Database(path);
    // An index over fewer rows, under the name and the root page of the correct one.
    db.unsafeMode(true);
    db.pragma('writable_schema = ON');
    db.exec(
      `UPDATE sqlite_schema SET sql = replace(sql, 'signature IS NOT NULL', 'position = 1') WHERE name = 'events_by_signature'`,
    );
    db.pragma('writable_schema = RESET');
    db.exec('REINDEX events_by_signature');
    db.pragma('writable_schema = ON');
    db.exec(
      `UPDATE sqlite_schema SET sql = replace(sql, 'position = 1', 'signature IS NOT NULL') WHERE name = 'events_by_signature'`,
    );
    db.close();
    expect(await faultsOf(path)).toContainEqual(
      expect.objectContaining({ problem: expect.stringContaining('missing from index events_by_signature') }),
    );
    await rebuildLog(path);
    expect(await faultsOf(path)).toEqual([]);
  });

  it('fsck accepts times that clock resets have moved back', async () => {
    const path = temporaryDatabase();
    const clock = new TestClock();
    const right = clock.read();
    for (const wrong of [2 * HOUR, HOUR]) {
      const service = new TestService({ path, clock });
      await service.agent();
      clock.set(right + wrong);
      await service.agent();
      await service.forum.persistClock();
      await service.close();
      clock.set(right);
      await writeWholeLog(path, (log) => resetClock(log, right));
    }
    await new TestService({ path, clock }).agent();
    expect(await faultsOf(path)).toEqual([]);
  });

  it('fsck names lines that are missing at the end', async () => {
    const path = await writtenLog();
    tamper(path, 'DELETE FROM events WHERE position = (SELECT max(position) FROM events)');
    const problem = /^the log has (\d+) lines, but its published checkpoint covers \d+: restore a backup/;
    expect(await faultsOf(path)).toContainEqual(
      expect.objectContaining({ position: null, stream: null, problem: expect.stringMatching(problem) }),
    );
  });

  it('fsck rejects a file that is not a log', async () => {
    const path = temporaryDatabase();
    await expect(fsckLog(path)).rejects.toThrow(`cannot read the database ${path}`);
    new Database(path).close();
    writeFileSync(path, '');
    await expect(fsckLog(path)).rejects.toThrow('the file contains no log');
    new Database(path).exec('CREATE TABLE other (x)').close();
    await expect(fsckLog(path)).rejects.toThrow('the file is a database of another program');
  });
});

describe('backup', () => {
  it('a backup copies a consistent state while the service keeps writing', async () => {
    const { path, debate } = await serving();
    const target = `${path}.copy`;
    const writing = (async () => {
      for (let move = 0; move < 50; move++) await debate(`during ${move}`);
    })();
    const { events } = await backupDatabase(path, target);
    await writing;
    expect(events).toBeGreaterThanOrEqual(4);
    expect(await faultsOf(target)).toEqual([]);
    expect(existsSync(`${target}-wal`)).toBe(false);
    const drafts = readdirSync(dirname(target)).filter((name) => name.endsWith('.partial'));
    // The service writes drafts of its checkpoint beside it.
    expect(drafts.filter((name) => name.startsWith(basename(target)))).toEqual([]);
  });

  it('a backup is a new log, which rejects cursors of the original however far it has grown', async () => {
    const { path, running, id } = await serving();
    const target = `${path}.copy`;
    const { logId, copiedFrom } = await backupDatabase(path, target);
    expect(copiedFrom).toBe(running.service.forum.store.log.logId);
    expect(logId).not.toBe(copiedFrom);
    await running.stop();

    await copyKeyFileForLog(defaultKeyFile(path, copiedFrom), defaultKeyFile(target, logId), logId);
    const restored = await run({ DATABASE_PATH: target }, running.clock);
    expect(restored.service.forum.store.log.logId).toBe(logId);
    const stream = `/chambers/${id}/stream`;
    const conflict = { refusal: { status: 409, body: { error: 'FORUM_ERR_CONFLICT' } } };
    expect(await subscribe(restored, `${stream}?after=2&log=${copiedFrom}`)).toMatchObject(conflict);
    const beyond = { refusal: { status: 400, body: { error: 'FORUM_ERR_VALIDATION' } } };
    expect(await subscribe(restored, `${stream}?after=99`)).toMatchObject(beyond);
  });

  it.each(['release-0.1', 'schema-7'])(
    'a backup copies a file of an earlier schema, which migrates: %s',
    async (folder) => {
      const path = temporaryDatabase();
      copyFileSync(new URL(`../../../fixtures/logs/${folder}/chambers.db`, import.meta.url), path);
      const version = foreignConnection(path).pragma('user_version');
      const { logId } = await backupDatabase(path, `${path}.copy`);
      expect(foreignConnection(`${path}.copy`).pragma('user_version')).toEqual(version);
      await migrateDatabase(`${path}.copy`);
      expect(await fsckLog(`${path}.copy`)).toMatchObject({ logId, faults: 0 });
    },
  );

  it('a backup overwrites nothing', async () => {
    const path = await writtenLog();
    await expect(backupDatabase(path, path)).rejects.toThrow('already exists');
  });

  it('a backup of a missing file leaves nothing', async () => {
    const target = temporaryDatabase();
    await expect(backupDatabase(`${target}.missing`, target)).rejects.toThrow('cannot read the database');
    expect(existsSync(target)).toBe(false);
  });
});
