// Withholding in a SQLite file: its bytes, its trigger, and interruptions of the erasure.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { copyLog } from '../../../src/log/open-log.ts';
import { backupDatabase } from '../../../src/log/sqlite/backup.ts';
import { migrateDatabase } from '../../../src/log/sqlite/database-file.ts';
import { openSqliteStore } from '../../../src/log/sqlite/store.ts';
import { faultsOf } from '../../durability/log-book.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { TestService } from '../../kit/test-service.ts';
import { eventually } from '../../kit/until.ts';
import { asSchema9, foreignConnection } from '../entries.ts';
import { debated, describeWithholding, SECRET, stubsOf } from '../withheld.ts';

const PROGRAM = fileURLToPath(new URL('closing-program.ts', import.meta.url));

const placeAt = (place: string) => ({ place, open: () => openSqliteStore(place) });

/** Returns whether any file of the database's folder holds the secret. */
async function remains(path: string): Promise<boolean> {
  const folder = dirname(path);
  return readdirSync(folder).some((name) => readFileSync(join(folder, name), 'latin1').includes(SECRET));
}

describeWithholding(async () => ({
  ...placeAt(temporaryDatabase()),
  copy: async (from) => {
    const to = temporaryDatabase();
    await copyLog(from, to);
    return placeAt(to);
  },
  tamper: async (path, sql) => foreignConnection(path).exec(sql),
  remains,
}));

async function withheldService(path = temporaryDatabase()) {
  const chamber = await debated(openSqliteStore(path));
  const { store } = chamber.service;
  const withhold = async () => store.withholding.withhold(await stubsOf(store, chamber.events));
  const erased = () =>
    eventually(() => expect(store.withholding.erasure).toEqual({ isPending: false, problem: undefined }));
  return { path, chamber, store, withhold, erased };
}

it('no byte of a withheld text is left in the database, -wal and -shm files', async () => {
  const { path, withhold, erased, store, chamber } = await withheldService();
  // Free pages hold the texts of rows that were replaced before.
  const { state } = (await chamber.service.forum.chamber(chamber.chamberId)) ?? {};
  await store.log.writeSnapshot(
    chamber.chamberId,
    { eventId: 3, leaf: Buffer.alloc(32), state: JSON.stringify(state) },
    0,
  );
  await store.log.dropSnapshot(chamber.chamberId);
  expect(await remains(path)).toBe(true);
  await withhold();
  await erased();
  expect(await remains(path)).toBe(false);
  await chamber.service.must('POST', `/chambers/${chamber.chamberId}/debate`, {
    by: chamber.members[0],
    body: { comment: 'on' },
  });
  await chamber.service.close();
  expect(await remains(path)).toBe(false);
  expect(await faultsOf(path)).toEqual([]);
});

it('an outside reader delays the erasure, and a restart resumes it', async () => {
  const { path, withhold, store, chamber } = await withheldService();
  const reader = foreignConnection(path);
  reader.exec('BEGIN; SELECT count(*) FROM events');
  await withhold();
  await eventually(() => expect(store.withholding.erasure.problem).toMatch('another program is reading old pages'));
  expect(await remains(path)).toBe(true);
  await chamber.service.close();
  reader.exec('COMMIT');
  reader.close();
  const again = openSqliteStore(path);
  await eventually(() => expect(again.withholding.erasure.isPending).toBe(false));
  expect(await remains(path)).toBe(false);
  await again.close();
});

it('a backup made before the erasure holds no byte of the text either', async () => {
  const { path, withhold, store } = await withheldService();
  const reader = foreignConnection(path);
  reader.exec('BEGIN; SELECT count(*) FROM events');
  await withhold();
  expect(store.withholding.erasure.isPending).toBe(true);
  const target = temporaryDatabase();
  await backupDatabase(path, target);
  expect(await remains(target)).toBe(false);
  expect(await faultsOf(target)).toEqual([]);
  reader.exec('COMMIT');
});

it.each([
  ['UPDATE events SET line = line', 'no such function: append_only_but_withheld'],
  ['DELETE FROM events', 'append-only'],
])('another program’s statement is rejected after a withholding: %s', async (sql, problem) => {
  const { path, withhold } = await withheldService();
  await withhold();
  expect(() => foreignConnection(path).exec(sql)).toThrow(problem);
});

it('texts are withheld in a file of schema 9 like in any other', async () => {
  const { path, chamber } = await withheldService();
  await chamber.service.close();
  asSchema9(path);
  await migrateDatabase(path);
  const store = openSqliteStore(path);
  const service = new TestService({ store, clock: chamber.service.clock });
  await store.withholding.withhold(await stubsOf(store, chamber.events));
  await eventually(() => expect(store.withholding.erasure.isPending).toBe(false));
  expect(await remains(path)).toBe(false);
  await service.close();
  expect(await faultsOf(path)).toEqual([]);
});

it('a process that closes its log during an erasure exits normally, and the next start finishes the erasure', async () => {
  const { path, chamber, store } = await withheldService();
  const [stub] = await stubsOf(store, chamber.events);
  await chamber.service.close();
  const stubs = join(dirname(path), 'stubs.ndjson');
  writeFileSync(stubs, Buffer.from(stub?.line ?? ''));
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, path, stubs], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  const again = openSqliteStore(path);
  await eventually(() => expect(again.withholding.erasure.isPending).toBe(false));
  await again.close();
});
