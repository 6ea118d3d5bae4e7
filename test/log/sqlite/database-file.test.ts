// Only their owner can read the files of an open database. They are watched: a lost file stops the process before the next response.
import {
  chmodSync,
  copyFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, vi } from 'vitest';
import { LogCorruption } from '../../../src/log/damage.ts';
import { backupDatabase } from '../../../src/log/sqlite/backup.ts';
import { openReader } from '../../../src/log/sqlite/reader.ts';
import { createSqliteLog } from '../../../src/log/sqlite/whole-log.ts';
import { atEnd, temporaryDatabase } from '../../kit/temporary.ts';
import { entry, foreignConnection, openLog } from '../entries.ts';

async function openStore() {
  const path = temporaryDatabase();
  const reported: LogCorruption[] = [];
  const store = openLog(path, { onCorruption: (error) => reported.push(error) });
  await store.log.append({ entries: [entry(1, 1), entry(1, 2)] });
  return { path, store, reported };
}

const DAMAGES: readonly [string, (path: string) => void][] = [
  ['deleted', (path) => rmSync(path)],
  ['replaced', replace],
  ['truncated', (path) => truncateSync(path, 0)],
];

function replace(path: string): void {
  copyFileSync(path, `${path}.copy`);
  renameSync(`${path}.copy`, path);
}

describe('a name that ends with white space', () => {
  it.each([' ', '\t', '\n'])(
    'a database name that ends with the white space %j is not opened, read or copied to',
    async (space) => {
      const path = temporaryDatabase();
      const lock = openLog(path);
      expect(() => openLog(path + space)).toThrow('ends with white space');
      expect(() => openReader(path + space)).toThrow('ends with white space');
      await expect(backupDatabase(path, `${path}.copy${space}`)).rejects.toThrow('ends with white space');
      expect(() => createSqliteLog(`${path}.copy${space}`)).toThrow('ends with white space');
      expect(readdirSync(dirname(path)).filter((name) => name !== name.trim())).toEqual([]);
      await lock.close();
    },
  );
});

describe.each(['', '-wal', '-shm'])('a file chambers.db%s', (suffix) => {
  it.each(DAMAGES)(
    `a file chambers.db${suffix} that is %s while the log is open fails the next append and is reported`,
    async (how, damage) => {
      const { path, store, reported } = await openStore();
      const { size } = statSync(path + suffix);
      damage(path + suffix);
      // SQLite maps the -shm file into memory: closing the log would touch pages beyond its end.
      if (how === 'truncated') atEnd(() => truncateSync(path + suffix, size));
      const isSaved = suffix === '-wal' && how === 'deleted';
      const outcome = isSaved ? ': all acknowledged moves have been saved in the database' : '';
      const message = `${path}${suffix} was ${how} while it was open${outcome}`;
      await expect(store.log.append({ entries: [entry(1, 3)] })).rejects.toThrow(message);
      await expect(store.meta.persistClock(9)).rejects.toThrow(LogCorruption);
      expect(reported.map((error) => error.message)).toEqual([message, message]);
    },
  );
});

describe('a deleted write-ahead log', () => {
  const lines = (path: string) => copyOf(path).prepare('SELECT count(*) FROM events').pluck().get();

  it('a checkpoint saves a deleted write-ahead log in the main file', async () => {
    const { path, store } = await openStore();
    rmSync(`${path}-wal`);
    await expect(store.log.append({ entries: [entry(1, 3)] })).rejects.toThrow(
      'all acknowledged moves have been saved',
    );
    expect(lines(path)).toBe(2);
  });

  it('a deleted write-ahead log is not saved once another program has opened the database', async () => {
    const { path, store } = await openStore();
    rmSync(`${path}-wal`);
    expect(() => foreignConnection(path).pragma('user_version')).toThrow('disk I/O error');
    await expect(store.log.append({ entries: [entry(1, 3)] })).rejects.toThrow('-wal was replaced');
    expect(() => lines(path)).toThrow('no such table');
  });

  it('a deleted write-ahead log is reported as partly saved while an outside reader needs former pages', async () => {
    const { path, store } = await openStore();
    const reader = foreignConnection(path);
    reader.exec('BEGIN; SELECT * FROM events');
    await store.log.append({ entries: [entry(1, 3)] });
    rmSync(`${path}-wal`);
    await expect(store.log.append({ entries: [entry(1, 4)] })).rejects.toThrow(
      'the latest acknowledged moves may be lost',
    );
  });
});

/** Opens a copy of the main file without its -wal file. */
function copyOf(path: string) {
  copyFileSync(path, `${path}.alone`);
  return foreignConnection(`${path}.alone`);
}

it('the death of the writer thread fails the current and every later append, and is reported', async () => {
  const posting = vi.spyOn(Worker.prototype, 'postMessage');
  const { store, reported } = await openStore();
  const writer = posting.mock.contexts.at(-1) as Worker;
  posting.mockRestore();
  const underWay = store.log.append({ entries: [entry(1, 3)] }).catch((error: unknown) => error);
  await writer.terminate();
  const outcome = await underWay;
  if (outcome instanceof Error) expect(outcome).toBeInstanceOf(LogCorruption);
  await expect(store.log.append({ entries: [entry(2, 1)] })).rejects.toThrow(LogCorruption);
  expect(reported[0]?.message).toBe('the thread that writes the log has ended');
  expect((await store.log.readPage(1, 0, 9)).count).toBeGreaterThan(1);
});

it('a write after the close is rejected without a report', async () => {
  const { store, reported } = await openStore();
  await store.close();
  await expect(store.meta.persistClock(9)).rejects.toThrow();
  expect(reported).toEqual([]);
});

it('a write-ahead log that lost its last frames fails the next append', async () => {
  const { path, store } = await openStore();
  truncateSync(`${path}-wal`, statSync(`${path}-wal`).size - 1);
  await expect(store.log.append({ entries: [entry(1, 3)] })).rejects.toThrow('-wal was truncated');
});

it.each(['TRUNCATE', 'RESTART', 'FULL', 'PASSIVE'])(
  'a %s checkpoint by another program is not reported as damage',
  async (mode) => {
    const { path, store, reported } = await openStore();
    const other = foreignConnection(path);
    for (let eventId = 3; eventId < 20; eventId++) {
      other.pragma(`wal_checkpoint(${mode})`);
      await store.log.append({ entries: [entry(1, eventId)] });
    }
    expect(await store.log.lastEventId(1)).toBe(19);
    expect(reported).toEqual([]);
  },
);

it('the log’s own checkpoints are not reported as damage', async () => {
  const { path, store } = await openStore();
  for (let eventId = 3; eventId < 600; eventId++) {
    await store.log.append({
      entries: [entry(1, eventId, { line: Buffer.from(`{"eventId":${eventId},"x":"${'x'.repeat(9_000)}"}`) })],
    });
  }
  expect(statSync(`${path}-wal`).size).toBeLessThan(10_000_000);
});

it('a write-ahead log that grew because of an outside reader is truncated after the reader ends', async () => {
  const { path, store, reported } = await openStore();
  const reader = foreignConnection(path);
  reader.exec('BEGIN; SELECT * FROM events');
  let eventId = 3;
  for (; statSync(`${path}-wal`).size < 16_000_000; eventId++) {
    await store.log.append({ entries: [entry(1, eventId, { line: Buffer.alloc(500_000, '1') })] });
  }
  reader.exec('COMMIT');
  for (const at of [eventId, eventId + 1]) await store.meta.persistClock(at);
  expect(statSync(`${path}-wal`).size).toBeLessThan(9_000_000);
  expect(reported).toEqual([]);
});

describe('file modes', () => {
  const modes = (path: string) =>
    Object.fromEntries(
      readdirSync(dirname(path)).map((name) => [name, (statSync(join(dirname(path), name)).mode & 0o777).toString(8)]),
    );

  it('database files are created readable and writable only by their owner', async () => {
    const before = process.umask(0);
    atEnd(() => void process.umask(before));
    const { path } = await openStore();
    await backupDatabase(path, `${path}.copy`);
    expect(modes(path)).toEqual({
      'chambers.db': '600',
      'chambers.db-shm': '600',
      'chambers.db-wal': '600',
      'chambers.db.lock': '600',
      'chambers.db.copy': '600',
    });
  });

  it('database files keep the mode that their operator set', async () => {
    const path = temporaryDatabase();
    writeFileSync(path, '');
    chmodSync(path, 0o640);
    openLog(path);
    expect(modes(path)).toMatchObject({ 'chambers.db': '640', 'chambers.db-wal': '640' });
  });
});
