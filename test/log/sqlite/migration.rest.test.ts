// A migration that is killed at any moment resumes with the same result.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { migrateDatabase } from '../../../src/log/sqlite/database-file.ts';
import type { MigrationProgress } from '../../../src/log/sqlite/migration.ts';
import { SCHEMA_VERSION } from '../../../src/log/sqlite/schema.ts';
import { faultsOf } from '../../durability/log-book.ts';
import { temporaryDatabase } from '../../kit/temporary.ts';
import { flipBit, foreignConnection } from '../entries.ts';

const PROGRAM = fileURLToPath(new URL('migration-program.ts', import.meta.url));
const KILLS = Number(process.env['MIGRATION_KILLS'] ?? 6);
const STORED = 'SELECT position, chamber_id, account, event_id, line, signature, nodes FROM events ORDER BY position';

describe.each([
  ['release 0.1.0', 'release-0.1'],
  ['commit 1500e52', 'schema-7'],
])('a database of %s', (_title, folder) => {
  function copy(): string {
    const path = temporaryDatabase();
    copyFileSync(new URL(`../../../fixtures/logs/${folder}/chambers.db`, import.meta.url), path);
    return path;
  }

  async function migrated(path = copy()): Promise<readonly MigrationProgress[]> {
    const progress: MigrationProgress[] = [];
    await migrateDatabase(path, (step) => progress.push(step));
    return progress;
  }

  it('a migration keeps every byte of the events, and adds checksums', async () => {
    const path = copy();
    const before = foreignConnection(path).prepare(STORED).all();
    const progress = await migrated(path);
    expect(foreignConnection(path).prepare(STORED).all()).toEqual(before);
    const steps = folder === 'schema-7' ? ['keys'] : ['keys', 'checksums', 'tables'];
    expect([...new Set(progress.map(({ step }) => step))]).toEqual(steps);
    for (const { of } of progress) expect(of).toBe(before.length);
    const rows = foreignConnection(path)
      .prepare('SELECT CAST(line AS BLOB) AS line, nodes, line_crc, nodes_crc FROM events')
      .all();
    for (const { line, nodes, line_crc, nodes_crc } of rows as {
      line: Buffer;
      nodes: Buffer | null;
      line_crc: number;
      nodes_crc: number | null;
    }[]) {
      expect([line_crc, nodes_crc]).toEqual([crc32(line), nodes && crc32(nodes)]);
    }
    expect(await faultsOf(path)).toEqual([]);
    expect(await migrated(path)).toEqual([]);
  });

  it('a migrated database still rejects changes to its events', async () => {
    const path = copy();
    await migrated(path);
    expect(() => foreignConnection(path).exec("UPDATE events SET line = ''")).toThrow(/append.only/);
    expect(() => foreignConnection(path).exec('DELETE FROM events')).toThrow('append-only');
  });

  it.each([['line'], ['nodes']] as const)('a migration gives a damaged %s a wrong checksum', async (column) => {
    const path = copy();
    const position = foreignConnection(path)
      .prepare('SELECT max(position) FROM events WHERE nodes IS NOT NULL')
      .pluck()
      .get();
    flipBit(path, { column, position: position as number, bit: 300 });
    await migrated(path);
    const damaged = foreignConnection(path).prepare(
      `SELECT CAST(${column} AS BLOB) AS bytes, ${column}_crc AS crc FROM events WHERE position = ?`,
    );
    const { bytes, crc } = damaged.get(position) as { readonly bytes: Buffer; readonly crc: number };
    // The file of the later commit had checksums before the damage.
    expect(crc).not.toBe(crc32(bytes));
    expect(await faultsOf(path)).toHaveLength(1);
  });

  it(`a migration completes after kill -9 at ${KILLS} or more random instants, some before and some after its end`, async () => {
    const whole = copy();
    const duration = (await run(whole, Number.POSITIVE_INFINITY)).millis;
    const right = contentOf(whole);
    const leftAt = new Set<unknown>();
    for (let round = 0; round < KILLS || leftAt.size === 1; round++) {
      const path = copy();
      await run(path, Math.random() * duration * 1.5);
      leftAt.add(foreignConnection(path).pragma('user_version', { simple: true }));
      await migrated(path);
      expect(contentOf(path)).toEqual(right);
      expect(await faultsOf(path)).toEqual([]);
    }
    expect(right['version']).toBe(SCHEMA_VERSION);
  }, 120_000);
});

/** Migrates the database in a process that is killed after that many milliseconds. */
async function run(path: string, killAfterMillis: number): Promise<{ readonly millis: number }> {
  const child = spawn(process.execPath, [PROGRAM, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  const began = performance.now();
  child.stdin.write('go\n');
  if (killAfterMillis === Number.POSITIVE_INFINITY) await once(child.stdout, 'data');
  else await setTimeout(killAfterMillis);
  const millis = performance.now() - began;
  child.kill('SIGKILL');
  await exited;
  return { millis };
}

function contentOf(path: string): Readonly<Record<string, unknown>> {
  const db = foreignConnection(path);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all();
  const rowsOf = (table: unknown) => [String(table), db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all()];
  return { version: db.pragma('user_version', { simple: true }), ...Object.fromEntries(tables.map(rowsOf)) };
}
