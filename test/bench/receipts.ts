// The cost of accountability: moves per second with and without checkpoints, and with a receipt for every move; and how far the
// checkpoint lags behind the log, under full load and when idle.
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { type PostgresServer, startPostgres } from '../kit/postgres-server.ts';
import { type Contest, type Figures, measureMoves } from './nodes.ts';
import { type Options, scaled } from './options.ts';
import { drive, withFolder, withServerOn } from './processes.ts';
import type { Report } from './report.ts';
import { about, failuresOf, measureInRounds, rowOf, type Series } from './rounds.ts';
import { SERVICE, WITHOUT_CHECKPOINTS } from './sides.ts';
import { bound, compare } from './verdicts.ts';

const CHECKPOINTS_SHARE_MIN = 0.95;
const RECEIPTS_SHARE_MIN = 0.8;
const LAG_SECONDS_MAX = { load: 10, calm: 2 } as const;

/** Each run takes several seconds, because a checkpoint is published once a second. */
const STORES = [
  { store: 'SQLite', isOnSqlite: true, movesPerConnection: 1_000 },
  { store: 'PostgreSQL', isOnSqlite: false, movesPerConnection: 500 },
] as const;

const CONNECTIONS = 64;
const AGENTS = 3;
const CALM_MOVES = 80;
const CALM_EVERY_MILLIS = 100;
const SAMPLE_MILLIS = 20;

export async function benchReceipts(options: Options): Promise<Report> {
  const server = await startPostgres();
  try {
    const stores = STORES.filter(({ store }) => options.only.test(store));
    const reports: Report[] = [];
    for (const each of stores) reports.push(await shares(server, each, options));
    reports.push(await lags(options));
    return {
      bench: `receipts (${CONNECTIONS} connections)`,
      rows: reports.flatMap(({ rows }) => rows),
      verdicts: reports.flatMap(({ verdicts }) => verdicts),
    };
  } finally {
    await server.stop();
  }
}

async function shares(
  server: PostgresServer,
  { store, ...settings }: (typeof STORES)[number],
  options: Options,
): Promise<Report> {
  const contests: readonly Contest[] = [
    { name: `${store}: ${WITHOUT_CHECKPOINTS.name}`, side: WITHOUT_CHECKPOINTS, nodes: 1, ...settings },
    { name: `${store}: ${SERVICE.name}`, side: SERVICE, nodes: 1, ...settings },
    { name: `${store}: service, a receipt for every move`, side: SERVICE, nodes: 1, wantsReceipts: true, ...settings },
  ];
  const contenders = contests.map((contest) => {
    return { name: contest.name, measure: () => measureMoves(server, contest, options) };
  });
  const series = await measureInRounds(contenders, options.runs);
  const objections = failuresOf(series);
  const [without, plain, receipted] = series as [Series<Figures>, Series<Figures>, Series<Figures>];
  const perSecond = (each: Series<Figures>) => rowOf(each, 'moves/s', (run) => run.perSecond);
  const share = (what: string, of: Series<Figures>, value: number) =>
    compare({
      what: `${store}: ${what} / without checkpoints`,
      of: perSecond(of),
      to: perSecond(without),
      target: { is: 'at least', value },
      objections,
    });
  return {
    bench: store,
    rows: [
      ...series.map(perSecond),
      ...series.map((each) => rowOf(each, 'ms p99', ({ latency }) => latency.p99)),
      ...series.map((each) => rowOf(about('service', each), 'µs CPU a move', (run) => run.nodeMicros)),
    ],
    verdicts: [
      share('with checkpoints', plain, CHECKPOINTS_SHARE_MIN),
      share('with receipts too', receipted, RECEIPTS_SHARE_MIN),
    ],
  };
}

interface Lags {
  /** In seconds. */
  readonly load: number;
  readonly calm: number;
}

async function lags(options: Options): Promise<Report> {
  const measure = () => measureLags(options);
  const [series] = (await measureInRounds([{ name: 'checkpoint behind the log', measure }], options.runs)) as [
    Series<Lags>,
  ];
  const load = rowOf(about('at most, under full load', series), 's', (run) => run.load);
  const calm = rowOf(about('at most, in calm', series), 's', (run) => run.calm);
  return {
    bench: 'lag',
    rows: [load, calm],
    verdicts: [
      bound({ what: 'lag under full load', of: load, target: { is: 'at most', value: LAG_SECONDS_MAX.load } }),
      bound({ what: 'lag in calm', of: calm, target: { is: 'at most', value: LAG_SECONDS_MAX.calm } }),
    ],
  };
}

function measureLags(options: Options): Promise<Lags> {
  return withFolder((folder) => {
    const path = join(folder, 'bench.db');
    return withServerOn(SERVICE, path, async ({ authority }) => {
      const watch = new LagWatch(path);
      const movesPerConnection = scaled(STORES[0].movesPerConnection, options);
      const full = { authority, connections: CONNECTIONS, agentsPerChamber: AGENTS, movesPerConnection, rounds: 1 };
      await drive({ kind: 'moves', ...full });
      await watch.untilCovered();
      const load = watch.take();
      const pacedMoves = scaled(CALM_MOVES, options);
      const paced = { consumers: 1, bursts: [], pacedMoves, everyMillis: CALM_EVERY_MILLIS };
      await drive({ kind: 'fanout', authority, ...paced });
      await watch.untilCovered();
      const calm = watch.take();
      watch.close();
      return { load, calm };
    });
  });
}

/** Reads the lines and the checkpoint from the file. The lag is the age of the oldest line that the checkpoint does not cover. */
class LagWatch {
  readonly #db: Database.Database;
  readonly #timer: NodeJS.Timeout;
  /** The times at which the log first exceeded these sizes, for lines that are not covered yet. */
  #uncovered: { readonly lines: number; readonly at: number }[] = [];
  #lines = 0;
  #lag = 0;

  constructor(path: string) {
    this.#db = new Database(path, { readonly: true });
    const read = this.#db.prepare<[], { readonly lines: number; readonly covered: number }>(
      `SELECT (SELECT coalesce(max(position), 0) FROM events) AS lines,
         (SELECT coalesce(max(size), 0) FROM checkpoints) AS covered`,
    );
    this.#timer = setInterval(() => {
      const { lines, covered } = read.get() ?? { lines: 0, covered: 0 };
      const at = performance.now();
      if (lines > this.#lines) this.#uncovered.push({ lines: this.#lines, at });
      this.#lines = lines;
      const isCovered = (next: { readonly lines: number } | undefined) => (next?.lines ?? lines) <= covered;
      while (this.#uncovered.length > 0 && isCovered(this.#uncovered[1])) this.#uncovered.shift();
      const [oldest] = this.#uncovered;
      if (oldest !== undefined) this.#lag = Math.max(this.#lag, at - oldest.at);
    }, SAMPLE_MILLIS);
  }

  async untilCovered(): Promise<void> {
    do {
      await new Promise((resolve) => setTimeout(resolve, 2 * SAMPLE_MILLIS));
    } while (this.#uncovered.length > 0);
  }

  /** Returns the largest lag since the last call, in seconds. */
  take(): number {
    const lag = this.#lag;
    this.#lag = 0;
    return lag / 1_000;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#db.close();
  }
}
