// A single agent on one connection: the cost of a response whose commit is not shared.
import { durabilityObjections } from './durability.ts';
import { type Options, scaled } from './options.ts';
import { drive, withServer } from './processes.ts';
import type { Report } from './report.ts';
import { failuresOf, measureInRounds, rowOf } from './rounds.ts';
import { LIBSODIUM_BASELINE, SERVICE, type Side } from './sides.ts';
import { compare } from './verdicts.ts';

const MOVES = 4_000;

export async function benchSingle(options: Options): Promise<Report> {
  const series = await measureInRounds(
    [SERVICE, LIBSODIUM_BASELINE].map((side) => ({ name: side.name, measure: () => measure(side, options) })),
    options.runs,
  );
  const rows = series.map((each) => rowOf(each, 'ms median answer', ({ latency }) => latency.p50));
  const tails = series.map((each) => rowOf(each, 'ms p99', ({ latency }) => latency.p99));
  const [of, to] = rows;
  if (of === undefined || to === undefined) throw new Error('two sides must be measured');
  const objections = [...failuresOf(series), ...(await durabilityObjections(SERVICE, LIBSODIUM_BASELINE))];
  return {
    bench: 'single (one connection, one agent)',
    rows: [...rows, ...tails],
    verdicts: [
      compare({ what: 'median: service / baseline', of, to, target: { is: 'at most', value: 1.4 }, objections }),
    ],
  };
}

function measure(side: Side, options: Options) {
  return withServer(side, ({ authority }) =>
    drive({
      kind: 'moves',
      authority,
      connections: 1,
      agentsPerChamber: 1,
      movesPerConnection: scaled(MOVES, options),
      rounds: 1,
    }),
  );
}
