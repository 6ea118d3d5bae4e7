// Runs programs against a hostile service, and measures their additional costs compared with a normal run.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect } from 'vitest';
import { CLI } from '../kit/programs.ts';
import { type Attacker, type AttackName, openAttacker } from './attacker.ts';

const COST_MIB_MAX = 64;
/** The time limit for attacks that waste time; the programs' own limits are set this low. */
const SECONDS_MAX = 30;
/** The peak memory of a process also depends on the timing of its garbage collections. */
export const AGAIN = { retry: 2 };

const PEAK_MEMORY = import.meta.resolve('../kit/peak-memory.ts');
export const NODE = ['--no-warnings', `--import=${PEAK_MEMORY}`];

/** Attacks whose response exceeds a limit of bytes or values, so that it is not requested again. */
export const TOO_LARGE: ReadonlySet<string> = new Set<AttackName>([
  'gzipBomb',
  'gzippedBomb',
  'endlessBody',
  'endlessLine',
  'endlessEvent',
  'endlessError',
  'smallValues',
]);

export type Case = readonly [call: string, attack: AttackName];

/** Only every third attack runs by default, because each case starts a process. COST=all runs all of them. */
export function casesOf(calls: Readonly<Record<string, readonly AttackName[]>>): readonly Case[] {
  const all = Object.entries(calls).flatMap(([call, attacks]) => attacks.map((attack): Case => [call, attack]));
  return process.env['COST'] === 'all' ? all : all.filter((_, index) => index % 3 === 0);
}

export interface Run {
  readonly output: string;
  readonly peakMib: number;
}

export interface Attacked extends Run {
  readonly costMib: number;
  readonly requests: number;
  readonly seconds: number;
}

type Start = (url: string) => Promise<Run>;

/** The tests of a file share a folder with an agent's key, and the costs of a normal run of each program. */
export class Costs {
  readonly #calmMib = new Map<string, Promise<number>>();
  #folder = '';

  static forThisFile(): Costs {
    const costs = new Costs();
    beforeAll(async () => {
      costs.#folder = mkdtempSync(join(tmpdir(), 'cost-'));
      await costs.runCli(['agent', 'new', `--key=${costs.keyFile}`]);
    });
    afterAll(() => rmSync(costs.#folder, { recursive: true }));
    return costs;
  }

  get keyFile(): string {
    return join(this.#folder, 'agent.json');
  }

  newPeakFile(): string {
    return join(this.#folder, `peak-${randomUUID()}`);
  }

  async run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
    const peakFile = this.newPeakFile();
    const options = { env: { ...process.env, ...env, TEST_PEAK_FILE: peakFile }, maxBuffer: 64_000_000 };
    const { stdout, stderr } = await promisify(execFile)(file, args, options).catch((failed) => failed);
    return { output: `${stdout}${stderr}`, peakMib: peakMibOf(peakFile) };
  }

  runCli(words: readonly string[]): Promise<Run> {
    return this.run(process.execPath, [...NODE, CLI, ...words]);
  }

  /** All calls of a program are compared with the same normal run. */
  async attackedBy(attack: AttackName, program: string, start: Start): Promise<Attacked> {
    const attacker = await openAttacker();
    try {
      const calm = this.#calmMib.get(program) ?? calmMib(attacker, start);
      this.#calmMib.set(program, calm);
      const mib = await calm;
      Object.assign(attacker, { attack, requests: 0 });
      const startedAt = performance.now();
      const result = await start(attacker.url);
      const seconds = (performance.now() - startedAt) / 1000;
      return { ...result, costMib: result.peakMib - mib, requests: attacker.requests, seconds };
    } finally {
      attacker.close();
    }
  }
}

export function peakMibOf(peakFile: string): number {
  return Number(readFileSync(peakFile, 'utf8')) / 1024;
}

/** The first run also compiles code that later runs take from a cache. */
async function calmMib({ url }: Attacker, start: Start): Promise<number> {
  return Math.min((await start(url)).peakMib, (await start(url)).peakMib);
}

/** Expects that the program ends with the error after a single request. */
export function expectSingleRequest({ output, requests }: Attacked): void {
  expect({ output, requests }).toEqual({ output: expect.stringContaining('CLIENT_ERR_TOO_LARGE'), requests: 1 });
}

export function expectCheap({ costMib, seconds, output }: Attacked): void {
  expect({ costMib, seconds, output: output.slice(0, 300) }).toEqual({
    costMib: expect.toSatisfy((mib: number) => mib <= COST_MIB_MAX),
    seconds: expect.toSatisfy((seconds: number) => seconds <= SECONDS_MAX),
    output: expect.anything(),
  });
  console.info(`${Math.round(costMib)} MiB, ${seconds.toFixed(1)} s: ${output.slice(0, 100).trim()}`);
}
