// What a hostile service costs a program that talks to it: bounded memory, one request and a bounded time.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { CLI, ROOT } from '../kit/programs.ts';
import { python } from '../kit/python.ts';
import { startSeat } from '../mcp/seat-process.ts';
import { type Attacker, type AttackName, openAttacker } from './attacker.ts';

const COST_MIB_MAX = 64;
/** The peak of a process also depends on when its garbage is collected. */
const AGAIN = { retry: 2 };
/** For attacks on time: the limits of the programs are set so low. */
const SECONDS_MAX = 30;

const PEAK_MEMORY = import.meta.resolve('../kit/peak-memory.ts');
const CALL_HOSTILE = fileURLToPath(new URL('call-hostile.ts', import.meta.url));
const CALL_HOSTILE_PY = fileURLToPath(new URL('call-hostile.py', import.meta.url));
const SAMPLE = join(ROOT, 'fixtures/logs/chamber.ndjson');
const REGISTRY = '0x5FbDB2315678afecb367f032d93F642f64180aa3';

let attacker: Attacker;
let folder: string;
let keyFile: string;
beforeAll(async () => {
  attacker = await openAttacker();
  folder = mkdtempSync(join(tmpdir(), 'cost-'));
  keyFile = join(folder, 'agent.json');
  await runCli(['agent', 'new', `--key=${keyFile}`]);
});
afterAll(() => {
  attacker.close();
  rmSync(folder, { recursive: true });
});

interface Run {
  readonly output: string;
  readonly peakMib: number;
}

async function run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
  const peakFile = join(folder, 'peak');
  const options = { env: { ...process.env, ...env, TEST_PEAK_FILE: peakFile }, maxBuffer: 64_000_000 };
  const { stdout, stderr } = await promisify(execFile)(file, args, options).catch((failed) => failed);
  return { output: `${stdout}${stderr}`, peakMib: Number(readFileSync(peakFile, 'utf8')) / 1024 };
}

const NODE = ['--no-warnings', `--import=${PEAK_MEMORY}`];

const runCli = (words: readonly string[]) => run(process.execPath, [...NODE, CLI, ...words]);

const runJs = (call: string) => {
  const limits = JSON.stringify({ responseMillisMax: 2_000, silenceMillisMax: 2_000 });
  return run(process.execPath, [...NODE, CALL_HOSTILE, attacker.url, call, limits]);
};

const runPython = (call: string) => {
  const limits = JSON.stringify({ seconds: 2, silence_seconds: 2 });
  return run('python3', [CALL_HOSTILE_PY, attacker.url, call, limits], { PYTHONPATH: join(ROOT, 'src/client/python') });
};

/** What each program takes without an attack, by its words. */
const calmMib = new Map<string, number>();

interface Attacked extends Run {
  readonly costMib: number;
  readonly requests: number;
  readonly seconds: number;
}

async function attackedBy(attack: AttackName, words: string, start: () => Promise<Run>): Promise<Attacked> {
  attacker.attack = 'none';
  // The first one also compiles what later ones take from a cache.
  const calm = async () => Math.min((await start()).peakMib, (await start()).peakMib);
  if (!calmMib.has(words)) calmMib.set(words, await calm());
  Object.assign(attacker, { attack, requests: 0 });
  const startedAt = performance.now();
  const result = await start();
  const seconds = (performance.now() - startedAt) / 1000;
  return { ...result, costMib: result.peakMib - (calmMib.get(words) ?? 0), requests: attacker.requests, seconds };
}

function expectCheap({ costMib, seconds, output }: Attacked): void {
  expect({ costMib, seconds, output: output.slice(0, 300) }).toEqual({
    costMib: expect.toSatisfy((mib: number) => mib <= COST_MIB_MAX),
    seconds: expect.toSatisfy((seconds: number) => seconds <= SECONDS_MAX),
    output: expect.anything(),
  });
  console.info(`${Math.round(costMib)} MiB, ${seconds.toFixed(1)} s: ${output.slice(0, 100).trim()}`);
}

/** Those whose response exceeds a limit of bytes or values: they are not asked for again. */
const TOO_LARGE: ReadonlySet<string> = new Set<AttackName>([
  'gzipBomb',
  'gzippedBomb',
  'endlessBody',
  'endlessLine',
  'endlessEvent',
  'endlessError',
  'smallValues',
]);

type Case = readonly [call: string, attack: AttackName];
const casesOf = (calls: Readonly<Record<string, readonly AttackName[]>>) =>
  Object.entries(calls).flatMap(([call, attacks]) => attacks.map((attack): Case => [call, attack]));

const JS = casesOf({
  chambers: [
    'gzipBomb',
    'gzippedBomb',
    'endlessBody',
    'endlessError',
    'endlessHeaders',
    'endlessHints',
    'smallValues',
    'shapes',
    'longText',
    'drip',
  ],
  ideas: ['gzipBomb', 'endlessBody', 'smallValues', 'shapes', 'longItems', 'drip'],
  transcript: ['gzipBomb', 'longText'],
  history: ['gzipBomb', 'endlessLine', 'drip'],
  lines: ['endlessMessage', 'emptyMessages', 'endlessHeaders'],
  allLines: ['endlessMessage'],
  todos: ['gzipBomb', 'endlessEvent'],
  pass: ['endlessBody'],
});

describe('the JavaScript client', AGAIN, () => {
  it.each(JS)('pays little for %s with %s', async (call, attack) => {
    const attacked = await attackedBy(attack, call, () => runJs(call));
    expectCheap(attacked);
    if (!TOO_LARGE.has(attack)) return;
    expect(attacked.output).toContain('CLIENT_ERR_TOO_LARGE');
    expect(attacked.requests).toBe(1);
  });

  it('opens a stream of one message without an end once', async () => {
    const { output, requests } = await attackedBy('endlessMessage', 'lines', () => runJs('lines'));
    expect(output).toContain('CLIENT_ERR_TOO_LARGE');
    expect(requests).toBe(1);
  });
});

const PYTHON = casesOf({
  chambers: [
    'gzipBomb',
    'endlessBody',
    'endlessError',
    'endlessHeaders',
    'endlessHints',
    'smallValues',
    'shapes',
    'longText',
    'drip',
  ],
  history: ['endlessLine', 'drip'],
  events: ['endlessLine', 'endlessEvent', 'drip'],
  allEvents: ['endlessEvent'],
  todo: ['smallValues'],
  pass: ['endlessBody', 'endlessError'],
});

describe('the Python client', AGAIN, () => {
  for (const [call, attack] of PYTHON) {
    python(`pays little for ${call} with ${attack}`, async () => {
      const attacked = await attackedBy(attack, `python ${call}`, () => runPython(call));
      expectCheap(attacked);
      // It takes no compressed responses: a bomb is 3 MB of text that is not JSON.
      if (!TOO_LARGE.has(attack) || attack === 'gzipBomb') return;
      expect(attacked.output).toContain('CLIENT_ERR_TOO_LARGE');
      expect(attacked.requests).toBe(1);
    });
  }
});

const COMMANDS = casesOf({
  'chamber list': ['gzipBomb', 'smallValues', 'shapes', 'longText', 'invisible', 'rows', 'drip'],
  'chamber list --json': ['longText', 'invisible', 'shapes'],
  'chamber show 1': ['longText', 'longItems', 'shapes'],
  'chamber tail 1': ['endlessMessage', 'emptyMessages'],
  'export 1': ['gzipBomb', 'endlessLine'],
  todo: ['gzipBomb', 'smallValues', 'shapes'],
  'move pass 1': ['endlessBody'],
});

describe('the command line', AGAIN, () => {
  it.each(COMMANDS)('pays little for %s with %s', async (command, attack) => {
    const key = /^(todo|move)/.test(command) ? [`--key=${keyFile}`] : [];
    const words = [...command.split(' '), `--url=${attacker.url}`, ...key];
    const attacked = await attackedBy(attack, command, () => runCli(words));
    expectCheap(attacked);
    if (TOO_LARGE.has(attack)) expect(attacked.requests).toBe(1);
  });

  it.each<AttackName>(['gzipBomb', 'smallValues', 'longText', 'shapes', 'drip'])(
    'pays little for doctor with %s',
    async (attack) => {
      expectCheap(await attackedBy(attack, 'doctor', () => runCli(['doctor', attacker.url])));
    },
  );
});

const AUDITS = casesOf({
  '': ['gzipBomb', 'endlessBody', 'endlessError', 'endlessHeaders', 'smallValues', 'shapes', 'longTextOfAudit', 'drip'],
  '--chamber=1': ['gzipBomb', 'endlessLine', 'smallValues', 'drip'],
});

describe('the auditor', AGAIN, () => {
  it.each(AUDITS)('pays little for a service, %s, with %s', async (option, attack) => {
    const words = ['audit', attacker.url, '--timeout=1', ...(option === '' ? [] : [option])];
    const attacked = await attackedBy(attack, `audit ${option}`, () => runCli(words));
    expectCheap(attacked);
    if (TOO_LARGE.has(attack) && attack !== 'smallValues') expect(attacked.requests).toBe(1);
  });

  it.each<AttackName>(['gzipBomb', 'endlessBody', 'endlessHeaders', 'smallValues', 'longTextOfAudit', 'drip'])(
    'pays little for a chain with %s',
    async (attack) => {
      const words = ['audit', SAMPLE, `--rpc=${attacker.url}`, `--registry=${REGISTRY}`, '--timeout=1'];
      expectCheap(await attackedBy(attack, 'audit --rpc', () => runCli(words)));
    },
  );
});

describe('a seat for a model', AGAIN, () => {
  it.each<AttackName>(['none', 'gzipBomb', 'endlessEvent', 'smallValues', 'shapes', 'longText', 'reveals'])(
    'pays little for %s',
    async (attack) => {
      const attacked = await attackedBy(attack, 'mcp', async () => {
        const peakFile = join(folder, `peak-${randomUUID()}`);
        const env = { NODE_OPTIONS: NODE.join(' '), TEST_PEAK_FILE: peakFile };
        const seat = await startSeat('modern', { url: attacker.url, keyFile, env });
        for (const tool of ['whoami', 'todo', 'chambers']) await seat.client.callTool({ name: tool, arguments: {} });
        await seat.client.callTool({ name: 'read', arguments: { chamberId: 1 } });
        // Meanwhile the stream of its todo is read, too.
        await setTimeout(2_000);
        await seat.client.close();
        await vi.waitFor(() => expect(existsSync(peakFile)).toBe(true), { timeout: 10_000 });
        return { output: seat.bytes().slice(-300), peakMib: Number(readFileSync(peakFile, 'utf8')) / 1024 };
      });
      expectCheap(attacked);
    },
  );
});
