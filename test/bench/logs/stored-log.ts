// Large logs to read from: written once through the service's own spine, so that lines, chain, tree and tables are those
// of a real one, and kept between runs.
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { SCHEMA_VERSION } from '../../../src/log/sqlite/schema.ts';
import { BENCH_FOLDER } from '../folder.ts';
import { LogWriter } from './log-writer.ts';

export interface LogSpec {
  readonly name: string;
  /** Events of each chamber, which gets its id from its place, from 1. */
  readonly chambers: readonly number[];
}

/** The number to be raised when what is written changes. */
const FORM = 1;

/** The path of the database; a service may be started on it, as none of its events ever changes. */
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

/** Chambers that grow at the same time, their events one after another. */
const CHAMBERS_AT_ONCE = 100;

async function write(path: string, sizes: readonly number[]): Promise<void> {
  const writer = await LogWriter.open(path);
  for (let from = 0; from < sizes.length; from += CHAMBERS_AT_ONCE) {
    await writer.growChambers(sizes.slice(from, from + CHAMBERS_AT_ONCE));
  }
  await writer.close();
}
