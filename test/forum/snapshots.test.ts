// A cold stream is folded from its snapshot: the same state, from fewer lines; a snapshot that does not fit changes nothing.
import { readFileSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { ACCOUNT_SNAPSHOT_EVERY_EVENTS, STATE_VERSION } from '../../projections/snapshot.ts';
import { Streams } from '../../src/forum/streams.ts';
import { fsckDatabase } from '../../src/log/sqlite/fsck.ts';
import { rebuildDatabase } from '../../src/log/sqlite/repair.ts';
import { openSqliteStore } from '../../src/log/sqlite/store.ts';
import type { StreamId } from '../../src/log/stream-id.ts';
import { LogWriter } from '../bench/logs/log-writer.ts';
import { atEnd, temporaryDatabase } from '../kit/temporary.ts';
import { TestService } from '../kit/test-service.ts';
import { asSchema4 } from '../log/entries.ts';

const EVENTS = 2_345;

let original: Buffer | undefined;

/** A copy of the log, which is written once. */
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

/** The stream as it is first loaded, and how many lines that took. */
async function load(path: string, stream: StreamId = 1) {
  const store = openSqliteStore(path);
  const reading = vi.spyOn(store.log, 'readPage');
  const state = await new Streams(store.log, 10_000_000).at(stream);
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

function faults(path: string): readonly string[] {
  const found: string[] = [];
  fsckDatabase(path, ({ problem }) => found.push(problem));
  return found;
}

describe('a snapshot', () => {
  it('replaces the events before it, and rebuild makes the same one', async () => {
    const path = await written();
    const before = rows(path);
    expect(before).toMatchObject([{ stream: 1, event_id: 2_000, version: STATE_VERSION }]);
    const { state, lines } = await load(path);
    expect(lines).toBe(EVENTS - 2_000 + 1);
    expect(faults(path)).toEqual([]);

    change(path, 'DELETE FROM snapshots');
    const folded = await load(path);
    expect(folded.lines).toBe(EVENTS);
    expect(state).toEqual({ ...folded.state, bytes: expect.any(Number) });
    // The fold has left one.
    expect(rows(path)).toEqual(before);
    rebuildDatabase(path);
    expect(rows(path)).toEqual(before);
    expect(faults(path)).toEqual([]);
  });

  it.each([
    ['of another version', 'UPDATE snapshots SET version = 0', false],
    ['with a changed state', `UPDATE snapshots SET state = replace(state, 'build', 'guild')`, true],
    ['with another leaf', 'UPDATE snapshots SET leaf = zeroblob(32)', true],
    ['of another event', 'UPDATE snapshots SET event_id = 1999', true],
    ['beyond the head', 'UPDATE snapshots SET event_id = 9999', true],
  ])('%s is dropped, and the chamber is folded from its first event', async (_title, sql, isFault) => {
    const path = await written();
    const sound = await load(path);
    change(path, sql);
    expect(faults(path)).toEqual(isFault ? ['table snapshots does not match the log: run chambers rebuild'] : []);
    const { state, lines } = await load(path);
    expect(lines).toBe(EVENTS);
    expect(state).toEqual({ ...sound.state, bytes: expect.any(Number) });
    expect(faults(path)).toEqual([]);
    expect((await load(path)).lines).toBe(EVENTS - 2_000 + 1);
  });

  it('of an earlier schema is kept', async () => {
    const path = await written();
    const before = rows(path);
    asSchema4(path);
    expect((await load(path)).lines).toBe(EVENTS - 2_000 + 1);
    expect(rows(path)).toEqual(before);
    expect(faults(path)).toEqual([]);
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

  it('is left by a fold after a rebuild, as it was', async () => {
    const { path, did } = await changed();
    const before = rows(path);
    expect(before).toMatchObject([{ stream: did, event_id: ACCOUNT_SNAPSHOT_EVERY_EVENTS }]);
    rebuildDatabase(path);
    expect(rows(path)).toEqual([]);
    expect((await load(path, did)).lines).toBe(CHANGES + 1);
    expect(rows(path)).toEqual(before);
    expect((await load(path, did)).lines).toBe(CHANGES + 1 - ACCOUNT_SNAPSHOT_EVERY_EVENTS + 1);
    expect(faults(path)).toEqual([]);
  });

  it.each([
    ['with a changed state', `UPDATE snapshots SET state = replace(state, 'change', 'charge')`],
    ['beyond the head', 'UPDATE snapshots SET event_id = 9999'],
  ])('%s is dropped, and the account is folded from its first event', async (_title, sql) => {
    const { path, did } = await changed();
    const sound = await load(path, did);
    change(path, sql);
    expect(faults(path)).toEqual(['table snapshots does not match the log: run chambers rebuild']);
    const { state, lines } = await load(path, did);
    expect(lines).toBe(CHANGES + 1);
    expect(state).toEqual(sound.state);
    expect(faults(path)).toEqual([]);
  });
});
