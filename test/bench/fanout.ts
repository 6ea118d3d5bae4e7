// Live delivery to many consumers of one chamber: beside a floor that prepares a frame once and writes it to all.
import { durabilityObjections } from './durability.ts';
import { type Options, scaled } from './options.ts';
import { drive, withServer } from './processes.ts';
import type { Report } from './report.ts';
import { measureInRounds, rowOf } from './rounds.ts';
import { FANOUT_FLOOR, SERVICE, type Side } from './sides.ts';
import { compare } from './verdicts.ts';

const CONSUMERS = 1_000;
const POSTERS = 8;
const MOVES_EACH = 150;
const PACED_MOVES = 150;
const EVERY_MILLIS = 40;

export async function benchFanout(options: Options): Promise<Report> {
  const consumers = scaled(CONSUMERS, options);
  const sides = [SERVICE, FANOUT_FLOOR];
  const contenders = sides.map((side) => ({ name: side.name, measure: () => measure(side, consumers, options) }));
  const series = await measureInRounds(contenders, options.runs);
  const rows = series.map((each) => rowOf(each, 'deliveries/s', ({ deliveriesPerSecond }) => deliveriesPerSecond));
  const tails = series.map((each) => rowOf(each, 'ms p99', ({ latency }) => latency.p99));
  const [[of, to], [tail, floorTail]] = [rows, tails];
  if (!of || !to || !tail || !floorTail) throw new Error('two sides were measured');
  const objections = await durabilityObjections(...sides);
  return {
    bench: `fanout (${consumers} consumers; ${POSTERS} connections post for the rate, one every ${EVERY_MILLIS} ms for the latency)`,
    rows: [...rows, ...tails],
    verdicts: [
      compare({ what: 'deliveries: service / floor', of, to, target: { is: 'at least', value: 0.85 }, objections }),
      compare({
        what: 'p99: service / floor',
        of: tail,
        to: floorTail,
        target: { is: 'at most', value: 1.3 },
        objections,
      }),
    ],
  };
}

function measure(side: Side, consumers: number, options: Options) {
  return withServer(side, ({ authority }) =>
    drive({
      kind: 'fanout',
      authority,
      consumers,
      posters: POSTERS,
      movesEach: scaled(MOVES_EACH, options),
      pacedMoves: scaled(PACED_MOVES, options),
      everyMillis: EVERY_MILLIS,
    }),
  );
}
