// Runs start and doctor with the same environment; both must report the same error.
import { join } from 'node:path';
import { pino } from 'pino';
import { expect } from 'vitest';
import { ConfigError, readConfig } from '../../src/config.ts';
import { examine, exitCodeOf } from '../../src/doctor/doctor.ts';
import { startService } from '../../src/service/start.ts';
import { temporaryFolder } from './temporary.ts';

export type Environment = Readonly<Record<string, string>>;

const ENOUGH = { CHAIN: 'none', PORT: '0', LOG_LEVEL: 'silent' };

interface Ended {
  readonly exitCode: number;
  readonly message: string;
  /** Logged warnings. */
  readonly warnings: readonly string[];
}

/** Runs main.ts, and resolves to its exit code; a service that has started is stopped. */
export async function start(env: Environment): Promise<Ended> {
  const warnings: string[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(JSON.parse(line).msg) });
  const onFatal = (error: unknown) => {
    throw error;
  };
  try {
    await (await startService({ env, config: readConfig(env), logger, version: 'test', onFatal })).stop();
    return { exitCode: 0, message: '', warnings };
  } catch (error) {
    return { exitCode: error instanceof ConfigError ? 78 : 1, message: (error as Error).message, warnings };
  }
}

/** Expects both to report `sentence`. Returns the path of the database, unless the environment names one. */
export async function expectSame(made: Environment, exitCode: number, sentence: string | RegExp): Promise<string> {
  const path = join(temporaryFolder(), 'chambers.db');
  const env = { ...ENOUGH, ...(made['DATABASE_URL'] === undefined && { DATABASE_PATH: path }), ...made };
  const findings = await examine(env);
  const started = await start(env);
  const isPart = typeof sentence === 'string' ? expect.stringContaining(sentence) : expect.stringMatching(sentence);
  expect(started).toMatchObject({ exitCode, message: isPart });
  expect(exitCodeOf(findings)).toBe(exitCode);
  const [first] = findings.filter((each) => each.exitCode !== 0);
  expect(first).toMatchObject({ level: 'problem', exitCode });
  expect(started.message).toContain(first?.variable === null ? first.detail : `${first?.variable}: ${first?.detail}`);
  return path;
}
