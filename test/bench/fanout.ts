// Live delivery to many consumers of one chamber, against a baseline that prepares each frame once and writes it to all.
import { durabilityObjections } from './durability.ts';
import type { FanoutResult } from './load/fanout.ts';
import { type Options, scaled } from './options.ts';
import { drive, withServer } from './processes.ts';
import type { Report } from './report.ts';
import { about, measureInRounds, rowOf } from './rounds.ts';
import { FANOUT_BASELINE, SERVICE, type Side } from './sides.ts';
import { compare } from './verdicts.ts';

const CONSUMERS = 1_000;
const PACED_MOVES = 150;
const EVERY_MILLIS = 40;
/** Moves sent one after another, and moves sent together. */
const BURSTS = [
  { posters: 1, moves: 300, what: 'one connection posts' },
  { posters: 8, moves: 1_200, what: 'eight connections post' },
];

interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly of: (run: FanoutResult) => number;
  readonly target: { readonly is: 'at least' | 'at most'; readonly value: number };
}

const FIGURES: readonly Figure[] = [
  ...BURSTS.map(({ what }, index): Figure => {
    const of = ({ deliveriesPerSecond }: FanoutResult) => deliveriesPerSecond[index] ?? Number.NaN;
    return { what, unit: 'deliveries/s', of, target: { is: 'at least', value: 0.85 } };
  }),
  {
    what: `one move every ${EVERY_MILLIS} ms, p99`,
    unit: 'ms',
    of: ({ latency }) => latency.p99,
    target: { is: 'at most', value: 1.3 },
  },
];

export async function benchFanout(options: Options): Promise<Report> {
  const consumers = scaled(CONSUMERS, options);
  const sides = [SERVICE, FANOUT_BASELINE];
  const contenders = sides.map((side) => ({ name: side.name, measure: () => measure(side, consumers, options) }));
  const series = await measureInRounds(contenders, options.runs);
  const rows = FIGURES.map(({ what, unit, of }) => series.map((each) => rowOf(about(what, each), unit, of)));
  const objections = await durabilityObjections(...sides);
  return {
    bench: `fanout (${consumers} consumers of one chamber)`,
    rows: rows.flat(),
    verdicts: FIGURES.map(({ what, target }, index) => {
      const [of, to] = rows[index] ?? [];
      if (!of || !to) throw new Error('two sides must be measured');
      return compare({ what: `${what}: service / baseline`, of, to, target, objections });
    }),
  };
}

function measure(side: Side, consumers: number, options: Options): Promise<FanoutResult> {
  const bursts = BURSTS.map(({ posters, moves }) => ({ posters, movesEach: scaled(moves / posters, options) }));
  const pacedMoves = scaled(PACED_MOVES, options);
  return withServer(side, ({ authority }) =>
    drive({ kind: 'fanout', authority, consumers, bursts, pacedMoves, everyMillis: EVERY_MILLIS }),
  );
}
