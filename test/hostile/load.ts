// Hostile load together with honest agents, on a service with a heap of 512 MB and production limits: `npm run test:load -- --minutes 20`. Fails unless
// memory stays flat and every honest move gets a response within a second and is in the log once. Each kind of attack has its own loopback address.
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readPages } from '../../src/log/pages.ts';
import { findLine } from '../../src/process/child-output.ts';
import { fromLine } from '../../src/vocabulary/events.ts';
import { startPostgres } from '../kit/postgres-server.ts';
import { killTree } from '../kit/process-tree.ts';
import { ATTACKS } from './load/attacks.ts';
import type { Answered, HonestReport } from './load/honest.ts';
import { chamberOf, FULL_CHAMBERS, HONEST_AGENTS, openStore, PUBLIC_URL, writeScene } from './load/scene.ts';

const HEAP_MEGABYTES = 512;
const ANSWER_MILLIS_MAX = 1_000;
/** The delay before the first attacker, and between attackers. */
const START_MS = 1_000;
/** Attackers must not take CPU time from the service, not even while they start. */
const NICENESS = 10;
/** The maximum growth from the median of the second quarter to the median of the last. */
const GROWTH_MAX = 1.15;
const SAMPLE_MS = 1_000;
const LINES_PRINTED = 20;

/** The rounds of an attack that runs alone. */
const ROUNDS = 3;
const CALM_MS = 5_000;
const ATTACK_MS = 8_000;
const ALONE_SAMPLE_MS = 200;
const SLOWER_MAX = 5;
/** The maximum share of the main thread for one address after its burst: a quarter, plus noise. */
const SHARE_MAX = 0.3;
/** The manual's minimum. */
const RESIDENT_MEGABYTES_MAX = 512;
/** The maximum additional memory for unread responses. */
const UNREAD_MEGABYTES_MAX = 150;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    only: { type: 'string' },
    store: { type: 'string', default: 'sqlite' },
    alone: { type: 'boolean', default: false },
  },
});
const duration = Number(values.minutes) * 60_000;
const kinds = values.only === undefined ? ATTACKS : values.only.split(',').filter((kind) => kind !== '');

if (!['sqlite', 'postgres'].includes(values.store)) throw new Error('--store is sqlite or postgres');

// The service, its callers and PostgreSQL would otherwise outlive the script.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => killTree(process.pid));

const folder = mkdtempSync(join(tmpdir(), 'chambers-load-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const postgres = values.store === 'postgres' ? await startPostgres() : undefined;
const store = postgres === undefined ? { DATABASE_PATH: join(folder, 'chambers.db') } : { DATABASE_URL: postgres.url };
print(`writing ${FULL_CHAMBERS} full chambers (${values.store})`);
await writeScene(store);
const problems = values.alone ? await playAlone() : await play();
await postgres?.stop();
for (const problem of problems) print(`FAILED: ${problem}`);
process.exit(problems.length === 0 ? 0 : 1);

async function play(): Promise<readonly string[]> {
  const { service, url, ended } = await startService();
  const honest = fork(program('honest.ts'), [url]);
  const attackers: ChildProcess[] = [];
  for (const [index, kind] of kinds.entries()) {
    await sleep(START_MS);
    const attacker = fork(program('attacker.ts'), [kind, url, `127.0.0.${index + 2}`]);
    if (attacker.pid !== undefined) setPriority(attacker.pid, NICENESS);
    attackers.push(attacker);
  }
  print(`${kinds.join(', ')} for ${values.minutes} minutes on ${availableParallelism()} cores`);
  const resident: number[] = [];
  const until = performance.now() + duration;
  while (performance.now() < until && service.exitCode === null) {
    await sleep(SAMPLE_MS);
    resident.push(residentMegabytes(service));
  }
  const load = loadavg()[0]?.toFixed(1);
  const reporting = once(honest, 'message');
  honest.send('stop');
  const [report] = (await reporting) as [HonestReport];
  for (const attacker of attackers) attacker.disconnect();
  service.kill('SIGTERM');
  const exit = await ended;
  print(`resident MB over time: ${every(resident, LINES_PRINTED).join(' ')}`);
  return [
    ...(exit === '0' ? [] : [`the service ended with ${exit}`]),
    ...growthProblems(resident),
    ...answerProblems(report, load),
    ...(await logProblems(report.answered)),
  ];
}

interface Round {
  readonly calm: number;
  readonly attacked: number;
  /** The shares of the main thread's time, calm and attacked. */
  readonly shares: readonly [number, number];
  readonly most: number;
  readonly added: number;
  readonly exit: string | undefined;
}

async function playAlone(): Promise<readonly string[]> {
  const problems: string[] = [];
  print(
    'attack: per round, honest p50 calm → attacked (ms) and load of the main thread (%); resident MB, maximum and added',
  );
  for (const kind of kinds) {
    const rounds: Round[] = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await playRound(kind));
    const slower = median(rounds.map(({ calm, attacked }) => attacked / calm));
    const [most, added] = [median(rounds.map((each) => each.most)), median(rounds.map((each) => each.added))];
    const p50s = rounds.map(({ calm, attacked, shares }) => {
      const [before, then] = shares.map((share) => Math.round(100 * share));
      return `${calm.toFixed(1)} → ${attacked.toFixed(1)} (${before} → ${then})`;
    });
    print(`${kind}: ${p50s.join(', ')}; median ${slower.toFixed(1)} times; ${most}, +${added}`);
    if (!(slower <= SLOWER_MAX)) problems.push(`${kind}: honest moves took ${slower.toFixed(1)} times as long`);
    const share = median(rounds.map(({ shares: [before, then] }) => then - before));
    if (!(share <= SHARE_MAX)) problems.push(`${kind}: ${Math.round(100 * share)} % of the main thread`);
    if (most > RESIDENT_MEGABYTES_MAX) problems.push(`${kind}: ${most} MB`);
    if (kind === 'unread-pages' && added > UNREAD_MEGABYTES_MAX) problems.push(`${kind}: ${added} MB more`);
    for (const { exit } of rounds) if (exit !== '0') problems.push(`${kind}: the service ended with ${exit}`);
  }
  return problems;
}

async function playRound(kind: string): Promise<Round> {
  const { service, url, ended } = await startService();
  const honest = fork(program('honest.ts'), [url]);
  await sleep(CALM_MS / 2);
  const calmFrom = mainThreadMillis(service);
  await sleep(CALM_MS / 2);
  const before = residentMegabytes(service);
  const attackedFrom = mainThreadMillis(service);
  const attackedAt = Date.now();
  const attacker = fork(program('attacker.ts'), [kind, url, '127.0.0.2']);
  if (attacker.pid !== undefined) setPriority(attacker.pid, NICENESS);
  let most = before;
  // By then the address has used its burst.
  let sustained = { millis: attackedFrom, at: attackedAt };
  setTimeout(() => {
    sustained = { millis: mainThreadMillis(service), at: Date.now() };
  }, ATTACK_MS / 2);
  while (Date.now() < attackedAt + ATTACK_MS && service.exitCode === null && service.signalCode === null) {
    await sleep(ALONE_SAMPLE_MS);
    if (service.exitCode === null && service.signalCode === null) most = Math.max(most, residentMegabytes(service));
  }
  const shares = [
    (attackedFrom - calmFrom) / (CALM_MS / 2),
    (mainThreadMillis(service) - sustained.millis) / (Date.now() - sustained.at),
  ] as const;
  const reporting = once(honest, 'message');
  honest.send('stop');
  const [{ millis, answeredAt }] = (await reporting) as [HonestReport];
  if (!attacker.connected) throw new Error(`the attacker ${kind} failed`);
  attacker.disconnect();
  service.kill('SIGTERM');
  const exit = await ended;
  const isCalm = (_: number, index: number) => (answeredAt[index] ?? 0) < attackedAt;
  const [calm, attacked] = [millis.filter(isCalm), millis.filter((each, index) => !isCalm(each, index))];
  return { calm: median(calm), attacked: median(attacked), shares, most, added: most - before, exit };
}

async function startService(): Promise<{ service: ChildProcess; url: string; ended: Promise<string> }> {
  const main = fileURLToPath(new URL('../../dist/src/main.js', import.meta.url));
  const { PATH } = process.env;
  const keys = join(folder, 'service-keys.json');
  const production = { NODE_ENV: 'production', PUBLIC_URL, CHAIN: 'none', LOG_LEVEL: 'error', SERVICE_KEY_FILE: keys };
  const env = { PATH, PORT: '0', ...store, ...production };
  if (!existsSync(keys)) {
    const cli = fileURLToPath(new URL('../../dist/src/cli.js', import.meta.url));
    execFileSync(process.execPath, [cli, 'admin', 'new-keys'], { env });
  }
  const service = spawn(process.execPath, [`--max-old-space-size=${HEAP_MEGABYTES}`, main], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(service, 'exit').then(([code, signal]) => String(code ?? signal));
  const [, url = ''] = await findLine(service.stdout, /^listening on (\S+)$/);
  return { service, url, ended };
}

function program(name: string): string {
  return fileURLToPath(new URL(`load/${name}`, import.meta.url));
}

function residentMegabytes({ pid }: ChildProcess): number {
  const [, kibibytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kibibytes) / 1_000);
}

/** The CPU time of the main thread in hundredths of a second; 0 once the process has ended. */
function mainThreadMillis({ pid }: ChildProcess): number {
  const path = `/proc/${pid}/task/${pid}/stat`;
  if (!existsSync(path)) return 0;
  const [user, system] = readFileSync(path, 'utf8').split(') ').at(-1)?.split(' ').slice(11, 13).map(Number) ?? [];
  return 10 * ((user ?? 0) + (system ?? 0));
}

function growthProblems(resident: readonly number[]): readonly string[] {
  const quarter = Math.floor(resident.length / 4);
  const [second, last] = [median(resident.slice(quarter, 2 * quarter)), median(resident.slice(-quarter))];
  print(`resident MB: median of the second quarter ${second}, of the last ${last}, most ${Math.max(...resident)}`);
  return last <= GROWTH_MAX * second ? [] : [`memory grew from ${second} to ${last} MB`];
}

function answerProblems({ millis, errors }: HonestReport, load = ''): readonly string[] {
  const sorted = millis.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  const slowest = at(1);
  print(
    `honest moves: ${millis.length}, ms: p50 ${at(0.5)}, p99 ${at(0.99)}, slowest ${slowest}; load average ${load}`,
  );
  return [
    ...(millis.length > 0 && slowest < ANSWER_MILLIS_MAX ? [] : [`an honest move took ${slowest} ms`]),
    ...(errors.length === 0 ? [] : [`${errors.length} honest moves were not answered with 200, first ${errors[0]}`]),
  ];
}

/** Checks that each acknowledged move is in the log exactly once, as the event in its response; returns the problems. */
async function logProblems(answered: readonly Answered[]): Promise<readonly string[]> {
  const found = new Map<string, number[]>();
  const { log, close } = await openStore(store);
  for (let index = 0; index < HONEST_AGENTS; index++) {
    const stream = chamberOf(index);
    const until = await log.lastEventId(stream);
    for await (const { ndjson } of readPages(log, { stream, after: 0, until, lane: 'bulk' })) {
      for (const line of ndjson.toString().trimEnd().split('\n')) {
        const { eventId, request } = fromLine(line);
        if (request !== null) found.set(request.signature, [...(found.get(request.signature) ?? []), eventId]);
      }
    }
  }
  await close();
  const wrong = answered.filter(({ signature, eventId }) => found.get(signature)?.join() !== String(eventId));
  print(`honest moves in the log: ${found.size}, answered and not there once: ${wrong.length}`);
  return wrong.length === 0 ? [] : [`${wrong.length} answered moves are not in the log once`];
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

function every(numbers: readonly number[], count: number): readonly number[] {
  const step = Math.max(1, Math.floor(numbers.length / count));
  return numbers.filter((_, index) => index % step === 0);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
