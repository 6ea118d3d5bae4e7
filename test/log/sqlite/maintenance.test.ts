// fsck, rebuild and backup on real files, some of them tampered with by a program that drops the triggers first.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createKeyFile, defaultKeyFile } from '../../../src/keys/key-file.ts';
import { backupDatabase } from '../../../src/log/sqlite/backup.ts';
import { type ForumEvent, fromLine, toLine } from '../../../src/vocabulary/events.ts';
import { NO_PREVIOUS } from '../../../src/vocabulary/values.ts';
import { derivedRows, faultsOf, fsckLog, readEvents, rebuildLog } from '../../durability/log-book.ts';
import { openChamber } from '../../kit/chambers.ts';
import { subscribe } from '../../kit/consumers.ts';
import { debating, type Running, run } from '../../kit/service.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';

const CHAMBER_ID = 1;

interface Serving {
  readonly path: string;
  readonly running: Running;
  readonly debate: (comment: string) => Promise<number>;
}

/** A log with an account (position 1), a chamber created and joined (2, 3) and three debates (4 to 6), under the service that wrote it. */
async function serving(): Promise<Serving> {
  const path = temporaryDatabase();
  const running = await run({ DATABASE_PATH: path });
  const { debate } = await debating(running);
  for (const comment of ['one', 'two', 'three']) await debate(comment);
  return { path, running, debate };
}

/** A copy of what `write` leaves in a file, which is written once. */
function copies(write: () => Promise<string>): () => Promise<string> {
  let original: Promise<Buffer> | undefined;
  return async () => {
    original ??= write().then((path) => readFileSync(path));
    const path = temporaryDatabase();
    writeFileSync(path, await original);
    return path;
  };
}

/** The same log, whose service has ended. */
const written = copies(async () => {
  const { path, running } = await serving();
  await running.stop();
  return path;
});

function tamper(path: string, sql: string, ...values: readonly unknown[]): void {
  const db = new Database(path);
  for (const name of ['update', 'delete', 'replace']) db.exec(`DROP TRIGGER IF EXISTS events_refuse_${name}`);
  db.prepare(sql).run(...values);
  db.close();
}

function editLine(path: string, position: number, edit: (event: ForumEvent) => ForumEvent | string): void {
  const db = new Database(path, { readonly: true });
  const line = db.prepare('SELECT line FROM events WHERE position = ?').pluck().get(position) as string;
  db.close();
  const edited = edit(fromLine(line));
  const text = typeof edited === 'string' ? edited : toLine(edited);
  tamper(path, 'UPDATE events SET line = ? WHERE position = ?', text, position);
}

describe('fsck', () => {
  it('leaves the write-ahead log of a file that was emptied as it was, and says so', async () => {
    const { path, running } = await serving();
    const wal = readFileSync(`${path}-wal`);
    await running.stop();
    writeFileSync(path, '');
    writeFileSync(`${path}-wal`, wal);
    await expect(faultsOf(path)).rejects.toThrow(/^cannot read the database .*-wal holds part of it/);
    expect(readFileSync(`${path}-wal`)).toEqual(wal);
  });

  it('finds nothing in what the service wrote, while it runs', async () => {
    const { path, running } = await serving();
    expect(await fsckLog(path)).toEqual({
      logId: running.service.forum.store.log.logId,
      events: 6,
      chambers: 1,
      accounts: 1,
      faults: 0,
    });
  });

  const lineEdits: readonly [string, (event: ForumEvent) => ForumEvent | string, string][] = [
    ['changed', (event) => ({ ...event, payload: { comment: 'never said' } }) as ForumEvent, 'column nodes'],
    ['not canonical', (event) => ` ${toLine(event)}`, 'canonical'],
    ['not JSON', () => 'gone', 'not JSON'],
    ['of another chamber', (event) => ({ ...event, chamberId: 9 }) as ForumEvent, 'chamberId is 9'],
    ['numbered otherwise', (event) => ({ ...event, eventId: 9 }), 'eventId is 9'],
    ['dated back', (event) => ({ ...event, ts: '2020-01-01T00:00:00.000Z' }), 'ts is earlier than'],
    ['chained otherwise', (event) => ({ ...event, prev: NO_PREVIOUS }), 'prev is not'],
  ];
  it.each(lineEdits)('names the first bad event where a line is %s', async (_title, edit, problem) => {
    const path = await written();
    editLine(path, 5, edit);
    const bad = { position: 5, stream: CHAMBER_ID, eventId: 4 };
    expect(await faultsOf(path)).toContainEqual({ ...bad, problem: expect.stringContaining(problem) });
    expect((await faultsOf(path)).find((fault) => fault.position !== null)).toMatchObject(bad);
  });

  it.each([
    ['its signature column', 'UPDATE events SET signature = zeroblob(64) WHERE position = 5', 'column signature'],
    ['its tree nodes', 'UPDATE events SET nodes = zeroblob(32) WHERE position = 5', 'column nodes'],
    ['its number', 'UPDATE events SET event_id = 99 WHERE position = 5', 'column event_id is 5, not 4'],
  ])('names the event where a line stands and %s is changed', async (_title, sql, problem) => {
    const path = await written();
    tamper(path, sql);
    expect((await faultsOf(path)).map((fault) => fault.problem)).toContainEqual(expect.stringContaining(problem));
  });

  it('names the event after one that was taken out', async () => {
    const path = await written();
    tamper(path, 'DELETE FROM events WHERE position = 5');
    const place = { position: 6, stream: CHAMBER_ID, eventId: 5 };
    expect(await faultsOf(path)).toContainEqual({ ...place, problem: 'column event_id is 5, not 4' });
  });

  it.each([
    ['changed', 'UPDATE chambers SET listing = ?'],
    ['missing', 'DELETE FROM chambers WHERE creator_did <> ?'],
  ])('names the chamber whose derived row is %s', async (_title, sql) => {
    const path = await written();
    tamper(path, sql, 'Somebody else’s');
    const problem = expect.stringContaining('table chambers');
    expect(await faultsOf(path)).toEqual([{ position: null, stream: CHAMBER_ID, eventId: null, problem }]);
  });

  it('names the keys that an event is missing in, and rebuild fixes it', async () => {
    const path = await written();
    const db = new Database(path);
    // A key over fewer rows under the name and the number of pages of the right one.
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

  it('names a log without its id', async () => {
    const path = await written();
    tamper(path, "DELETE FROM meta WHERE name = 'log_id'");
    expect(await faultsOf(path)).toEqual([expect.objectContaining({ problem: expect.stringContaining('logId') })]);
  });

  it('rejects what is no database of ours', async () => {
    const path = temporaryDatabase();
    await expect(fsckLog(path)).rejects.toThrow(`cannot read the database ${path}`);
    new Database(path).exec('CREATE TABLE other (x)').close();
    await expect(fsckLog(path)).rejects.toThrow('the file has schema 0');
  });
});

describe('the published tree', () => {
  /** Enough lines for a full tile: accounts, then a chamber. */
  const ACCOUNTS = 260;
  const LINES = ACCOUNTS + 3;
  const published = copies(async () => {
    const path = temporaryDatabase();
    const service = new TestService({ path });
    const members = [];
    for (let agents = 0; agents < ACCOUNTS; agents++) members.push(await service.agent());
    await openChamber(service, members.slice(0, 2));
    await service.publish();
    expect(await service.log.lastPlace()).toBe(LINES);
    await service.close();
    return path;
  });

  const tilesOf = (path: string) => {
    const db = new Database(path, { readonly: true });
    const tiles = db.prepare('SELECT * FROM tiles ORDER BY level, tile').all();
    db.close();
    return tiles;
  };

  it.each([
    ['a hash is changed', 'UPDATE tiles SET hashes = zeroblob(length(hashes)) WHERE level = 0 AND tile = 1'],
    ['an entry is changed', 'UPDATE tiles SET hashes = zeroblob(length(hashes)) WHERE level = -1 AND tile = 0'],
    ['a tile is missing', 'DELETE FROM tiles WHERE level = 1'],
    ['there is a tile too much', "INSERT INTO tiles VALUES (0, 2, x'00')"],
    ['a tile is cut', 'UPDATE tiles SET hashes = substr(hashes, 1, 32) WHERE level = 0 AND tile = 1'],
  ])('is named where %s, and rebuild fixes it', async (_title, sql) => {
    const path = await published();
    expect(await faultsOf(path)).toEqual([]);
    const before = tilesOf(path);
    tamper(path, sql);
    const problem = 'table tiles does not match the log: run chambers rebuild';
    expect(await faultsOf(path)).toEqual([{ position: null, stream: null, eventId: null, problem }]);
    await rebuildLog(path);
    expect(tilesOf(path)).toEqual(before);
    expect(await faultsOf(path)).toEqual([]);
  });

  it('shows which line was changed with everything that follows from it, which rebuild leaves', async () => {
    const path = await published();
    const edit = (event: ForumEvent) => ({ ...event, ts: '2020-01-01T00:00:00.000Z' }) as ForumEvent;
    // The only line of an account: no other one of its stream holds its hash.
    editLine(path, 1, edit);
    const line = readEvents(path).find(({ ts }) => ts.startsWith('2020')) as ForumEvent;
    tamper(path, 'UPDATE events SET line_crc = ? WHERE position = 1', crc32(toLine(line)));
    const problem =
      /^it is not the line that the checkpoint was published over: restore a backup, or .*chambers new-log$/;
    const fault = { position: 1, stream: line.did, eventId: 1, problem: expect.stringMatching(problem) };
    expect(await faultsOf(path)).toEqual([fault]);
    const before = tilesOf(path);
    await expect(rebuildLog(path)).rejects.toThrow('lines are not those that the checkpoint was published over');
    expect(tilesOf(path)).toEqual(before);
  });

  it('shows that lines are missing at the end, or that the checkpoint is none', async () => {
    const path = await published();
    tamper(path, 'DELETE FROM events WHERE position = ?', LINES);
    const problem = `the log has ${LINES - 1} lines, and its checkpoint was published over ${LINES}: restore a backup`;
    expect(await faultsOf(path)).toContainEqual(
      expect.objectContaining({ position: null, stream: null, problem: expect.stringContaining(problem) }),
    );
    tamper(path, "UPDATE checkpoints SET note = 'none'");
    expect((await faultsOf(path)).map((fault) => fault.problem)).toContainEqual(
      expect.stringMatching(/^the stored checkpoint is no checkpoint of size/),
    );
  });
});

describe('rebuild', () => {
  it('makes the derived tables again, identical', async () => {
    const path = await written();
    const before = derivedRows(path);
    tamper(path, 'DELETE FROM chambers');
    tamper(path, 'DROP TABLE ideas');
    expect(await rebuildLog(path)).toEqual({ chambers: 1, ideas: 0 });
    expect(derivedRows(path)).toEqual(before);
    expect(await faultsOf(path)).toEqual([]);
  });

  it('is rejected while a service holds the file', async () => {
    const { path } = await serving();
    await expect(rebuildLog(path)).rejects.toThrow('another process is using it');
  });

  it('is rejected over a gap', async () => {
    const path = await written();
    tamper(path, 'UPDATE events SET event_id = 9 WHERE position = 6');
    await expect(rebuildLog(path)).rejects.toThrow(`event 9 of ${CHAMBER_ID} is damaged: column event_id is 9, not 5`);
  });

  it('changes nothing where a line cannot be folded, and names it', async () => {
    const path = await written();
    const before = derivedRows(path);
    editLine(path, 5, () => 'gone');
    await expect(rebuildLog(path)).rejects.toThrow(`event 4 of ${CHAMBER_ID} is damaged: the line is not JSON`);
    expect(derivedRows(path)).toEqual(before);
  });
});

describe('backup', () => {
  it('copies a consistent state while the service keeps writing', async () => {
    const { path, debate } = await serving();
    const target = `${path}.copy`;
    const writing = (async () => {
      for (let move = 0; move < 50; move++) await debate(`during ${move}`);
    })();
    const { events } = await backupDatabase(path, target);
    await writing;
    expect(events).toBeGreaterThanOrEqual(6);
    expect(await faultsOf(target)).toEqual([]);
    expect(existsSync(`${target}-wal`)).toBe(false);
    const drafts = readdirSync(dirname(target)).filter((name) => name.endsWith('.partial'));
    // The service writes its own checkpoint beside it.
    expect(drafts.filter((name) => name.startsWith(basename(target)))).toEqual([]);
  });

  it('is another log, so that a cursor of the original is rejected even where the copy has grown past it', async () => {
    const { path, running } = await serving();
    const target = `${path}.copy`;
    const { logId, copiedFrom } = await backupDatabase(path, target);
    expect(copiedFrom).toBe(running.service.forum.store.log.logId);
    expect(logId).not.toBe(copiedFrom);
    await running.stop();

    createKeyFile(defaultKeyFile(target, logId), logId, running.clock.read());
    const restored = await run({ DATABASE_PATH: target }, running.clock);
    expect(restored.service.forum.store.log.logId).toBe(logId);
    const stream = `/chambers/${CHAMBER_ID}/stream`;
    const conflict = { refusal: { status: 409, body: { error: 'FORUM_ERR_CONFLICT' } } };
    expect(await subscribe(restored, `${stream}?after=2&log=${copiedFrom}`)).toMatchObject(conflict);
    const beyond = { refusal: { status: 400, body: { error: 'FORUM_ERR_VALIDATION' } } };
    expect(await subscribe(restored, `${stream}?after=99`)).toMatchObject(beyond);
  });

  it('overwrites nothing', async () => {
    const path = await written();
    await expect(backupDatabase(path, path)).rejects.toThrow('exists already');
  });

  it('leaves nothing where there is nothing to copy', async () => {
    const target = temporaryDatabase();
    await expect(backupDatabase(`${target}.missing`, target)).rejects.toThrow('cannot read the database');
    expect(existsSync(target)).toBe(false);
  });
});
