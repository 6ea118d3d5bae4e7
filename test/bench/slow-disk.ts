// The effect on reads and moves of a disk whose fsync takes 20 ms longer, as on a busy cloud volume.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { latenciesOf } from './figures.ts';
import type { MovesResult } from './load/moves.ts';
import { during } from './load/span.ts';
import { type Options, scaled } from './options.ts';
import { begin, drive, withFolder, withServer } from './processes.ts';
import type { Report } from './report.ts';
import { failuresOf, measureInRounds, rowOf, type Series } from './rounds.ts';
import { SERVICE, type Side } from './sides.ts';
import { bound, exceed } from './verdicts.ts';

const SLOWER_MICROS = 20_000;
const MOVERS = 16;
const MOVES_PER_CONNECTION = 250;
const PAUSE_MS = 5;
const READS = { health: '/health', list: '/chambers', page: '/', graduated: '/ideas' } as const;
type Read = keyof typeof READS;

interface Figures extends MovesResult {
  readonly reads: Readonly<Record<Read, { readonly p50: number; readonly p99: number }>>;
}

export async function benchSlowDisk(options: Options): Promise<Report> {
  return withFolder(async (folder) => {
    const env = { ...SERVICE.env, LD_PRELOAD: build(folder), SLOW_FSYNC_MICROS: String(SLOWER_MICROS) };
    const sides = [
      { ...SERVICE, name: 'fsync + 20 ms', env },
      { ...SERVICE, name: 'this disk' },
    ];
    const contenders = sides.map((side) => ({ name: side.name, measure: () => measure(side, options) }));
    const series = (await measureInRounds(contenders, options.runs)) as [Series<Figures>, Series<Figures>];
    const objections = failuresOf(series);
    const moves = series.map((side) => rowOf(side, 'ms p50 of a move', ({ latency }) => latency.p50));
    const reads = (Object.keys(READS) as Read[]).flatMap((read) =>
      (['p50', 'p99'] as const).map((part) => {
        const [of, to] = series.map((side) =>
          rowOf(side, `ms ${part} of ${READS[read]}`, (run) => run.reads[read][part]),
        );
        if (of === undefined || to === undefined) throw new Error('nothing was measured');
        const target = { is: 'at most', value: part === 'p50' ? 6 : 15 } as const;
        return {
          rows: [of, to],
          verdict: exceed({ what: `${READS[read]} ${part}: longer by`, of, to, target, objections }),
        };
      }),
    );
    const [slow] = moves;
    if (slow === undefined) throw new Error('nothing was measured');
    return {
      bench: `slow-disk (${MOVERS} movers)`,
      rows: [...moves, ...reads.flatMap(({ rows }) => rows)],
      verdicts: [
        bound({ what: 'ms p50 of a move, fsync + 20 ms', of: slow, target: { is: 'at most', value: 45 }, objections }),
        ...reads.map(({ verdict }) => verdict),
      ],
    };
  });
}

/** Compiles the library with gcc, and returns its path. */
function build(folder: string): string {
  const library = join(folder, 'slow-fsync.so');
  const source = fileURLToPath(new URL('slow-fsync.c', import.meta.url));
  execFileSync('gcc', ['-shared', '-fPIC', '-o', library, source, '-ldl']);
  return library;
}

function measure(side: Side, options: Options): Promise<Figures> {
  return withServer(side, async ({ authority }) => {
    const asking = begin({ kind: 'probe', authority, paths: Object.values(READS), pauseMillis: PAUSE_MS });
    try {
      const moves = await drive({
        kind: 'moves',
        authority,
        connections: MOVERS,
        agentsPerChamber: 1,
        movesPerConnection: scaled(MOVES_PER_CONNECTION, options),
        rounds: 1,
      });
      asking.interrupt();
      const { samples } = await asking.result;
      const reads = Object.fromEntries(
        Object.keys(READS).map((read, index) => {
          const millis = during(samples[index] ?? [], moves.span).map((sample) => sample.millis);
          return [read, latenciesOf(millis)];
        }),
      ) as unknown as Figures['reads'];
      return { ...moves, reads };
    } finally {
      asking.release();
    }
  });
}
