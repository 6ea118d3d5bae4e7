// A cold chamber is folded from its snapshot: the same state, from fewer lines; a snapshot that does not fit changes nothing.
import { readFileSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { STATE_VERSION } from '../../projections/snapshot.ts';
import { Streams } from '../../src/forum/streams.ts';
import { fsckDatabase } from '../../src/log/sqlite/fsck.ts';
import { rebuildDatabase } from '../../src/log/sqlite/repair.ts';
import { openSqliteLog } from '../../src/log/sqlite/sqlite-log.ts';
import { LogWriter } from '../bench/logs/log-writer.ts';
import { atEnd, temporaryDatabase } from '../kit/temporary.ts';

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

/** The chamber as it is first loaded, and how many lines that took. */
async function load(path: string) {
  const log = openSqliteLog(path);
  const reading = vi.spyOn(log, 'readPage');
  const chamber = await new Streams(log, 10_000_000).load(1);
  const pages = await Promise.all(reading.mock.results.map(({ value }) => value));
  await log.close();
  return { chamber, lines: pages.reduce((sum, { count }) => sum + count, 0) };
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
    expect(before).toMatchObject([{ chamber_id: 1, event_id: 2_000, version: STATE_VERSION }]);
    const { chamber, lines } = await load(path);
    expect(lines).toBe(EVENTS - 2_000 + 1);
    expect(faults(path)).toEqual([]);

    change(path, 'DELETE FROM snapshots');
    const folded = await load(path);
    expect(folded.lines).toBe(EVENTS);
    expect(chamber).toEqual({ ...folded.chamber, bytes: expect.any(Number) });
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
    const { chamber, lines } = await load(path);
    expect(lines).toBe(EVENTS);
    expect(chamber).toEqual({ ...sound.chamber, bytes: expect.any(Number) });
    expect(faults(path)).toEqual([]);
    expect((await load(path)).lines).toBe(EVENTS - 2_000 + 1);
  });
});
