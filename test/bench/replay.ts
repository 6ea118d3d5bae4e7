// A late reader of a long log: the service's WebSocket and NDJSON against pages of rows, and the delay of other requests.
import { median } from './figures.ts';
import { healthDuring } from './health.ts';
import type { ReplayTask } from './load/replay.ts';
import { LONG_CHAMBER, twoChambers } from './logs/shapes.ts';
import { storedLog } from './logs/stored-log.ts';
import { type Options, scaled } from './options.ts';
import { drive, withServerOn } from './processes.ts';
import type { Report } from './report.ts';
import { about, measureInRounds, rowOf } from './rounds.ts';
import { REPLAY_BASELINE, SERVICE, type Side } from './sides.ts';
import { bound, compare } from './verdicts.ts';

const FOR_MILLIS = 3_000;
const WAIT = 'p99 of /health meanwhile';

interface Contest {
  readonly name: string;
  readonly side: Side;
  readonly over: ReplayTask['over'];
}

interface Figures {
  readonly linesPerSecond: number;
  /** The latency of /health in milliseconds, measured by another process meanwhile. */
  readonly healthP99: number;
}

const CONTESTS: readonly Contest[] = [
  { name: 'service, WebSocket', side: SERVICE, over: 'websocket' },
  { name: REPLAY_BASELINE.name, side: REPLAY_BASELINE, over: 'websocket' },
  { name: 'service, NDJSON', side: SERVICE, over: 'ndjson' },
];

export async function benchReplay(options: Options): Promise<Report> {
  const spec = twoChambers(options);
  const lines = spec.chambers[LONG_CHAMBER - 1] ?? 0;
  const path = await storedLog(spec);
  const forMillis = scaled(FOR_MILLIS, options);
  const series = await measureInRounds(
    CONTESTS.map(({ name, side, over }) => ({
      name,
      measure: () =>
        withServerOn(side, path, ({ authority }) =>
          measure({ kind: 'replay', authority, over, chamberId: LONG_CHAMBER, lines, forMillis }),
        ),
    })),
    options.runs,
  );
  const rates = series.map((each) => rowOf(each, 'lines/s', ({ linesPerSecond }) => linesPerSecond));
  const waits = series.map((each) => rowOf(about(WAIT, each), 'ms', ({ healthP99 }) => healthP99));
  const [stream, baseline, ndjson] = rates;
  const [streamWait, , ndjsonWait] = waits;
  if (!stream || !baseline || !ndjson || !streamWait || !ndjsonWait) throw new Error('three contests must be measured');
  const soon = { is: 'at most', value: 20 } as const;
  return {
    bench: `replay (${lines} lines to one late reader)`,
    rows: [...rates, ...waits],
    verdicts: [
      compare({ what: 'WebSocket / baseline', of: stream, to: baseline, target: { is: 'at least', value: 0.8 } }),
      compare({ what: 'NDJSON / baseline', of: ndjson, to: baseline, target: { is: 'at least', value: 0.8 } }),
      // The service is as fast as the baseline, within the usual spread of runs.
      compare({ what: 'NDJSON / WebSocket', of: ndjson, to: stream, target: { is: 'at least', value: 0.95 } }),
      bound({ what: 'p99 of /health during the WebSocket', of: streamWait, target: soon }),
      bound({ what: 'p99 of /health during NDJSON', of: ndjsonWait, target: soon }),
    ],
  };
}

/** Measures the rate alone, after a warm-up replay; then measures again while another client sends requests. */
async function measure(task: ReplayTask): Promise<Figures> {
  const [, ...linesPerSecond] = (await drive(task)).linesPerSecond;
  const { p99 } = await healthDuring(task.authority, () => drive(task));
  return { linesPerSecond: median(linesPerSecond), healthP99: p99 };
}
