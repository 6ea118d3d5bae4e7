// The service against that of another built checkout: `npm run bench -- versus --against ../other`.
import { type PostgresServer, startPostgres } from '../kit/postgres-server.ts';
import { type Contest, type Figures, measureMoves } from './nodes.ts';
import type { Options } from './options.ts';
import type { Report } from './report.ts';
import { failuresOf, measureInRounds, rowOf, type Series } from './rounds.ts';
import { SERVICE, type Side, serviceOf } from './sides.ts';
import { compare } from './verdicts.ts';

/** No figure may be worse by more than 10 %. */
const AT_LEAST = { is: 'at least', value: 0.9 } as const;
const AT_MOST = { is: 'at most', value: 1.1 } as const;

const LOADS = [
  { load: 'SQLite, 64 connections', isOnSqlite: true, movesPerConnection: 500 },
  { load: 'SQLite, one client alone', isOnSqlite: true, connections: 1, movesPerConnection: 4_000 },
  { load: 'PostgreSQL, 64 connections', isOnSqlite: false, movesPerConnection: 250 },
  { load: 'PostgreSQL, one client alone', isOnSqlite: false, connections: 1, movesPerConnection: 1_500 },
] as const;

export async function benchVersus(options: Options): Promise<Report> {
  if (options.against === undefined) throw new Error('--against must name a checkout');
  const sides = [SERVICE, serviceOf(options.against, 'other')] as const;
  const server = await startPostgres();
  try {
    const reports: Report[] = [];
    for (const load of LOADS.filter((each) => options.only.test(each.load))) {
      reports.push(await versus(server, load, sides, options));
    }
    return {
      bench: 'versus',
      rows: reports.flatMap(({ rows }) => rows),
      verdicts: reports.flatMap(({ verdicts }) => verdicts),
    };
  } finally {
    await server.stop();
  }
}

type Load = (typeof LOADS)[number];

async function versus(
  server: PostgresServer,
  { load, ...settings }: Load,
  sides: readonly [Side, Side],
  options: Options,
): Promise<Report> {
  const contenders = sides.map((side) => {
    const contest: Contest = { name: `${load}: ${side.name}`, side, nodes: 1, ...settings };
    return { name: contest.name, measure: () => measureMoves(server, contest, options) };
  });
  const series = await measureInRounds(contenders, options.runs);
  const objections = failuresOf(series);
  const [ours, theirs] = series as [Series<Figures>, Series<Figures>];
  const figures = [
    ['moves/s', AT_LEAST, (run: Figures) => run.perSecond],
    ['ms p50', AT_MOST, (run: Figures) => run.latency.p50],
    ['ms p99', AT_MOST, (run: Figures) => run.latency.p99],
    ['µs CPU a move', AT_MOST, (run: Figures) => run.nodeMicros + (settings.isOnSqlite ? 0 : run.serverMicros)],
  ] as const;
  const pairs = figures.map(([unit, target, figure]) => {
    const [of, to] = [rowOf(ours, unit, figure), rowOf(theirs, unit, figure)] as const;
    return { rows: [of, to], verdict: compare({ what: `${load}: ${unit}`, of, to, target, objections }) };
  });
  return {
    bench: load,
    rows: pairs.flatMap(({ rows }) => rows),
    verdicts: pairs.map(({ verdict }) => verdict),
  };
}
