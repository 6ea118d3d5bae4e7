// Signed moves per second: the service against baselines that each omit one more part.
import { durabilityObjections } from './durability.ts';
import type { MovesResult } from './load/moves.ts';
import { drive, withServer } from './processes.ts';
import type { Report } from './report.ts';
import { failuresOf, measureInRounds, rowOf, type Series } from './rounds.ts';
import { baseline, LIBSODIUM_BASELINE, NAIVE_BASELINE, SERVICE, type Side } from './sides.ts';
import { compare, type Row } from './verdicts.ts';

const CONNECTIONS = 64;
const AGENTS = 3;

interface Entry {
  readonly side: Side;
  readonly movesPerConnection: number;
  readonly rounds?: number;
}

const FAST = 1000;

const ENTRIES: readonly Entry[] = [
  { side: SERVICE, movesPerConnection: FAST },
  { side: LIBSODIUM_BASELINE, movesPerConnection: FAST },
  { side: NAIVE_BASELINE, movesPerConnection: 45 },
  { side: baseline('hello world: node:http', 'http', 'hello', 'group'), movesPerConnection: 60, rounds: 50 },
  { side: baseline('hello world: hono', 'hono', 'hello', 'group'), movesPerConnection: 60, rounds: 50 },
  {
    side: baseline('parse + digest, no verification, group commit', 'http', 'none', 'group'),
    movesPerConnection: 1500,
  },
  {
    side: baseline('node:http + libsodium worker + group commit', 'http', 'sodium', 'group'),
    movesPerConnection: FAST,
  },
  { side: baseline('node:http + node:crypto pool + group commit', 'http', 'node', 'group'), movesPerConnection: FAST },
  { side: baseline('hono + node:crypto pool + group commit', 'hono', 'node', 'group'), movesPerConnection: FAST },
  { side: baseline('the same, one transaction per move', 'hono', 'node', 'single'), movesPerConnection: 300 },
  {
    side: baseline('hono + noble on the main thread + group commit', 'hono', 'noble', 'group'),
    movesPerConnection: 60,
  },
];

export async function benchMoves(rounds: number, only: RegExp): Promise<Report> {
  const entries = ENTRIES.filter(({ side }) => only.test(side.name));
  const series = await measureInRounds(
    entries.map((entry) => ({ name: entry.side.name, measure: () => measureMoves(entry) })),
    rounds,
  );
  const rows = series.map((each) => rowOf(each, 'moves/s', ({ perSecond }) => perSecond));
  const tails = series.map((each) => rowOf(each, 'ms p99', ({ latency }) => latency.p99));
  return {
    bench: `moves (${CONNECTIONS} connections)`,
    rows: [...rows, ...tails],
    verdicts: await verdicts(series, rows, tails),
  };
}

function measureMoves({ side, movesPerConnection, rounds = 1 }: Entry): Promise<MovesResult> {
  return withServer(side, ({ authority }) =>
    drive({ kind: 'moves', authority, connections: CONNECTIONS, agentsPerChamber: AGENTS, movesPerConnection, rounds }),
  );
}

async function verdicts(series: readonly Series<MovesResult>[], rows: readonly Row[], tails: readonly Row[]) {
  const service = rows.find(({ what }) => what === SERVICE.name);
  const baselineRow = rows.find(({ what }) => what === LIBSODIUM_BASELINE.name);
  const naive = rows.find(({ what }) => what === NAIVE_BASELINE.name);
  const [tail, baselineTail] = [SERVICE, LIBSODIUM_BASELINE].map((side) =>
    tails.find(({ what }) => what === side.name),
  );
  if (!service || !baselineRow || !tail || !baselineTail) return [];
  const objections = [...failuresOf(series), ...(await durabilityObjections(SERVICE, LIBSODIUM_BASELINE))];
  return [
    compare({
      what: 'service / baseline',
      of: service,
      to: baselineRow,
      target: { is: 'at least', value: 0.7 },
      objections,
    }),
    ...(naive
      ? [
          compare({
            what: 'service / naive',
            of: service,
            to: naive,
            target: { is: 'at least', value: 15 },
            objections,
          }),
        ]
      : []),
    compare({
      what: 'p99: service / baseline',
      of: tail,
      to: baselineTail,
      target: { is: 'at most', value: 1.5 },
      objections,
    }),
  ];
}
