// Large logs to read from, written once with the service's own code, so that lines, chain, tree and tables are real, and kept
// between runs.
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { SCHEMA_VERSION } from '../../../src/log/sqlite/schema.ts';
import { BENCH_FOLDER } from '../folder.ts';
import { LogWriter } from './log-writer.ts';

export interface LogSpec {
  readonly name: string;
  /** The number of events of each chamber; the ids follow the order, from 1. */
  readonly chambers: readonly number[];
}

/** Raise this number when the contents of the logs change. */
const FORM = 1;

/** Returns the path of the database. A service may be started on it, because its events never change. */
export async function storedLog({ name, chambers }: LogSpec): Promise<string> {
  const events = chambers.reduce((sum, size) => sum + size, 0);
  const path = resolve(BENCH_FOLDER, `${name}-${chambers.length}-${events}-schema${SCHEMA_VERSION}-form${FORM}.db`);
  if (existsSync(path)) return path;
  process.stderr.write(`  writing a log of ${events} events in ${chambers.length} chambers\n`);
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const unfinished = `${path}.unfinished`;
  for (const suffix of ['', '-wal', '-shm']) rmSync(unfinished + suffix, { force: true });
  await write(unfinished, chambers);
  rmSync(`${unfinished}.lock`);
  renameSync(unfinished, path);
  return path;
}

/** The number of chambers that grow concurrently. */
const CHAMBERS_AT_ONCE = 100;

async function write(path: string, sizes: readonly number[]): Promise<void> {
  const writer = await LogWriter.open(path);
  for (let from = 0; from < sizes.length; from += CHAMBERS_AT_ONCE) {
    await writer.growChambers(sizes.slice(from, from + CHAMBERS_AT_ONCE));
  }
  await writer.close();
}
