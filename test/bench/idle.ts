// Waiting consumers: the memory of each, and the latency of other requests under load.
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { healthAlone, healthDuring } from './health.ts';
import { QUIET } from './logs/shapes.ts';
import { storedLog } from './logs/stored-log.ts';
import { type Options, scaled } from './options.ts';
import { begin, drive, type Running, residentBytes, withFolder, withServerOn } from './processes.ts';
import type { Report } from './report.ts';
import { about, failuresOf, measureInRounds, rowOf } from './rounds.ts';
import { SERVICE } from './sides.ts';
import { bound } from './verdicts.ts';

const CONSUMERS = 5_000;
const MOVES_PER_CONNECTION = 600;
const HEALTH_MS = 3_000;
/** The time for memory to settle before it is read. */
const SETTLE_MS = 3_000;

interface Figures {
  readonly kibibytes: number;
  /** The p99 of /health in milliseconds: on an idle service, with the consumers, and with the consumers and moves on 64 connections. */
  readonly aloneP99: number;
  readonly idleP99: number;
  readonly loadedP99: number;
  readonly failure: string | null;
}

export async function benchIdle(options: Options): Promise<Report> {
  const consumers = scaled(CONSUMERS, options);
  const stored = await storedLog(QUIET);
  const [series] = await measureInRounds(
    [{ name: SERVICE.name, measure: () => measure(stored, consumers, options) }],
    options.runs,
  );
  if (series === undefined) throw new Error('the service must be measured');
  const row = (what: string, unit: string, figure: (run: Figures) => number) =>
    rowOf(about(what, series), unit, figure);
  const memory = row('resident for each consumer', 'KiB', ({ kibibytes }) => kibibytes);
  return {
    bench: `idle (${consumers} consumers of ${QUIET.chambers.length} quiet chambers)`,
    rows: [
      memory,
      row('p99 of /health, alone', 'ms', ({ aloneP99 }) => aloneP99),
      row('p99 of /health, consumers waiting', 'ms', ({ idleP99 }) => idleP99),
      row('p99 of /health, consumers waiting and moves on 64 connections', 'ms', ({ loadedP99 }) => loadedP99),
    ],
    verdicts: [
      bound({
        what: 'memory for each consumer',
        of: memory,
        target: { is: 'at most', value: 12 },
        objections: failuresOf([series]),
      }),
    ],
  };
}

/** Measures a copy of the log, because moves are added to it. */
function measure(stored: string, consumers: number, options: Options): Promise<Figures> {
  return withFolder((folder) => {
    const path = join(folder, 'bench.db');
    copyFileSync(stored, path);
    return withServerOn(SERVICE, path, (server) => measureServer(server, consumers, options));
  });
}

async function measureServer({ authority, pid }: Running, consumers: number, options: Options): Promise<Figures> {
  const aloneP99 = await healthAlone(authority, scaled(HEALTH_MS, options));
  const chambers = QUIET.chambers.map((_, index) => index + 1);
  // The first consumers make V8 touch its whole young generation, once only, so the cost of a consumer is measured on later ones.
  const first = begin({ kind: 'idle', authority, chambers, consumers });
  await first.result;
  await sleep(SETTLE_MS);
  const before = residentBytes(pid);
  const others = begin({ kind: 'idle', authority, chambers, consumers });
  await others.result;
  await sleep(SETTLE_MS);
  const kibibytes = (residentBytes(pid) - before) / consumers / 1024;
  first.release();
  await sleep(SETTLE_MS);
  const idleP99 = await healthAlone(authority, scaled(HEALTH_MS, options));
  const movesPerConnection = scaled(MOVES_PER_CONNECTION, options);
  const moves = {
    kind: 'moves',
    authority,
    connections: 64,
    agentsPerChamber: 3,
    movesPerConnection,
    rounds: 1,
  } as const;
  const { done, p99: loadedP99 } = await healthDuring(authority, () => drive(moves));
  others.release();
  return { kibibytes, aloneP99, idleP99, loadedP99, failure: done.failure };
}
