// A stream that is not in memory is folded from its snapshot: the same state from fewer lines. A snapshot of another log is ignored.
import { readFileSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { ACCOUNT_SNAPSHOT_EVERY_EVENTS, STATE_VERSION } from '../../projections/snapshot.ts';
import { Streams } from '../../src/forum/streams.ts';
import { migrateDatabase } from '../../src/log/sqlite/database-file.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import { LogWriter } from '../bench/logs/log-writer.ts';
import { faultsOf, rebuildLog } from '../durability/log-book.ts';
import { onSqliteOnly } from '../kit/store.ts';
import { atEnd, temporaryDatabase } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { asSchema2 } from '../log/entries.ts';

onSqliteOnly('it opens files of SQLite');

const EVENTS = 2_345;

let original: Buffer | undefined;

/** Returns a copy of a log that is written only once. */
async function written(): Promise<string> {
  const path = temporaryDatabase();
  if (original === undefined) {
    const writer = await LogWriter.open(path);
    await writer.growChambers([EVENTS, 10]);
    await writer.close();
    original = readFileSync(path);
  }
  writeFileSync(path, original);
  return path;
}

/** Loads the stream, and returns its state and the number of lines read. */
async function load(path: string, stream: StreamId = 1) {
  const store = openSqliteStore(path);
  const reading = vi.spyOn(store.log, 'readPage');
  const state = await new Streams(store, 10_000_000).at(stream);
  const pages = await Promise.all(reading.mock.results.map(({ value }) => value));
  await store.close();
  return { state, lines: pages.reduce((sum, { count }) => sum + count, 0) };
}

function change(path: string, sql: string): void {
  new Database(path).exec(sql).close();
}

function rows(path: string): readonly unknown[] {
  const db = new Database(path, { readonly: true });
  atEnd(() => void db.close());
  return db.prepare('SELECT * FROM snapshots').all();
}

async function faults(path: string): Promise<readonly string[]> {
  return (await faultsOf(path)).map(({ problem }) => problem);
}

describe('a snapshot', () => {
  it('a fold starts from a snapshot, and rebuild writes the same snapshot', async () => {
    const path = await written();
    const before = rows(path);
    expect(before).toMatchObject([{ stream: '1', event_id: 2_000, version: STATE_VERSION }]);
    const { state, lines } = await load(path);
    expect(lines).toBe(EVENTS - 2_000 + 1);
    expect(await faults(path)).toEqual([]);

    change(path, 'DELETE FROM snapshots');
    const folded = await load(path);
    expect(folded.lines).toBe(EVENTS);
    expect(state).toEqual({ ...folded.state, bytes: expect.any(Number) });
    // The fold has written a snapshot.
    expect(rows(path)).toEqual(before);
    await rebuildLog(path);
    expect(rows(path)).toEqual(before);
    expect(await faults(path)).toEqual([]);
  });

  it.each([
    ['of a different version', 'UPDATE snapshots SET version = 0', false, 0],
    ['with a changed state', `UPDATE snapshots SET state = replace(state, 'build', 'guild')`, true, 0],
    ['with a different leaf', 'UPDATE snapshots SET leaf = zeroblob(32)', true, 1],
    ['of another event', 'UPDATE snapshots SET event_id = 1999', true, 1],
    ['beyond the head', 'UPDATE snapshots SET event_id = 9999', true, 0],
  ])(
    'a snapshot %s is dropped, and the chamber is folded from its first event',
    async (_title, sql, isFault, linesBefore) => {
      const path = await written();
      const sound = await load(path);
      change(path, sql);
      expect(await faults(path)).toEqual(
        isFault ? ['table snapshots does not match the log: run chambers rebuild'] : [],
      );
      const { state, lines } = await load(path);
      // The line of the snapshot's event shows that the state is not the one after that event.
      expect(lines).toBe(linesBefore + EVENTS);
      expect(state).toEqual({ ...sound.state, bytes: expect.any(Number) });
      expect(await faults(path)).toEqual([]);
      expect((await load(path)).lines).toBe(EVENTS - 2_000 + 1);
    },
  );

  it('a snapshot with an earlier schema is written again', async () => {
    const path = await written();
    const before = rows(path);
    asSchema2(path);
    await migrateDatabase(path);
    expect((await load(path)).lines).toBe(EVENTS - 2_000 + 1);
    expect(rows(path)).toEqual(before);
    expect(await faults(path)).toEqual([]);
  });
});

describe('a snapshot of an account', () => {
  const CHANGES = 20;

  async function changed(): Promise<{ readonly path: string; readonly did: string }> {
    const path = temporaryDatabase();
    const service = new TestService({ path });
    const by = await service.agent();
    for (let at = 0; at < CHANGES; at++) {
      await service.must('PUT', '/personality', { by, body: { patch: { style: `change ${at}` } } });
    }
    await service.close();
    return { path, did: by.did };
  }

  it('rebuild and a fold without a snapshot write the same snapshot of an account', async () => {
    const { path, did } = await changed();
    const before = rows(path);
    expect(before).toMatchObject([{ stream: did, event_id: ACCOUNT_SNAPSHOT_EVERY_EVENTS }]);
    await rebuildLog(path);
    expect(rows(path)).toEqual(before);
    change(path, 'DELETE FROM snapshots');
    expect((await load(path, did)).lines).toBe(CHANGES + 1);
    expect(rows(path)).toEqual(before);
    expect((await load(path, did)).lines).toBe(CHANGES + 1 - ACCOUNT_SNAPSHOT_EVERY_EVENTS + 1);
    expect(await faults(path)).toEqual([]);
  });

  it.each([
    ['with a changed state', `UPDATE snapshots SET state = replace(state, 'change', 'charge')`],
    ['beyond the head', 'UPDATE snapshots SET event_id = 9999'],
  ])('a snapshot of an account %s is dropped, and the account is folded from its first event', async (_title, sql) => {
    const { path, did } = await changed();
    const sound = await load(path, did);
    change(path, sql);
    expect(await faults(path)).toEqual(['table snapshots does not match the log: run chambers rebuild']);
    const { state, lines } = await load(path, did);
    expect(lines).toBe(CHANGES + 1);
    expect(state).toEqual(sound.state);
    expect(await faults(path)).toEqual([]);
  });
});
