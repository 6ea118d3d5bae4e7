// A move in a chamber with rounds against one in a chamber without, in the largest chambers, one agent after another.
import { watchCpu } from './cpu-time.ts';
import type { MovesResult } from './load/moves.ts';
import { type Options, scaled } from './options.ts';
import { drive, residentBytes, withServer } from './processes.ts';
import type { Report } from './report.ts';
import { failuresOf, measureInRounds, rowOf, type Series } from './rounds.ts';
import { SERVICE } from './sides.ts';
import { compare } from './verdicts.ts';

const MEMBERS = 256;
const CONNECTIONS = 2;
/** Two moves per turn, far fewer than the rounds allow. */
const MOVES_PER_CONNECTION = 4_000;
const TURN_SECONDS = 3_600;
const AT_MOST = { is: 'at most', value: 1.1 } as const;

const CONTESTS = [
  { name: 'with rounds', pace: { turnSeconds: TURN_SECONDS, rounds: { proposal: 100, debate: 100 } } },
  { name: 'without rounds', pace: { turnSeconds: TURN_SECONDS } },
] as const;

interface Figures extends MovesResult {
  readonly microsPerMove: number;
  readonly residentMib: number;
}

export async function benchPace(options: Options): Promise<Report> {
  const contenders = CONTESTS.map(({ name, pace }) => ({ name, measure: () => measure(pace, options) }));
  const series = await measureInRounds(contenders, options.runs);
  const [paced, unpaced] = series as [Series<Figures>, Series<Figures>];
  const objections = failuresOf(series);
  const figures = [
    ['µs CPU a move', (run: Figures) => run.microsPerMove],
    ['ms p50', (run: Figures) => run.latency.p50],
    ['MiB resident after it', (run: Figures) => run.residentMib],
  ] as const;
  const pairs = figures.map(([unit, figure]) => {
    const [of, to] = [rowOf(paced, unit, figure), rowOf(unpaced, unit, figure)] as const;
    return {
      rows: [of, to],
      verdict: compare({ what: `${unit}: with / without`, of, to, target: AT_MOST, objections }),
    };
  });
  return {
    bench: `pace (${CONNECTIONS} chambers of ${MEMBERS} members, 100 rounds)`,
    rows: pairs.flatMap(({ rows }) => rows),
    verdicts: pairs.map(({ verdict }) => verdict),
  };
}

function measure(pace: object, options: Options): Promise<Figures> {
  return withServer(SERVICE, async ({ authority, pid }) => {
    const cpu = watchCpu([pid]);
    const result = await drive({
      kind: 'moves',
      authority,
      connections: CONNECTIONS,
      agentsPerChamber: MEMBERS,
      pace,
      movesPerConnection: scaled(MOVES_PER_CONNECTION, options),
      rounds: 1,
    }).finally(cpu.end);
    const [millis = 0] = cpu.perSecond(result.span);
    const residentMib = residentBytes(pid) / 2 ** 20;
    return { ...result, microsPerMove: (1_000 * millis) / result.perSecond, residentMib };
  });
}
