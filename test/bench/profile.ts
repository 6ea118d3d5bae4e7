// Where the service's main thread spends its time while it accepts moves: a CPU profile and its heaviest functions.
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CpuProfile, type HeavyFunction, heaviestFunctions } from './cpu-profile.ts';
import { BENCH_FOLDER, stamp } from './folder.ts';
import { type Options, scaled } from './options.ts';
import { drive, withFolder, withServer } from './processes.ts';
import type { Report } from './report.ts';
import { profiledService } from './sides.ts';
import type { Row } from './verdicts.ts';

const FUNCTIONS = 10;
const MOVES_PER_CONNECTION = 1_500;

export async function benchProfile(options: Options): Promise<Report> {
  return withFolder(async (folder) => {
    const { perSecond, failure } = await withServer(profiledService(folder), ({ authority }) =>
      drive({
        kind: 'moves',
        authority,
        connections: 64,
        agentsPerChamber: 3,
        movesPerConnection: scaled(MOVES_PER_CONNECTION, options),
        rounds: 1,
      }),
    );
    if (failure !== null) throw new Error(`the service returned ${failure}`);
    const path = keep(join(folder, mainThreadsFile(folder)));
    const rows = heaviestFunctions(JSON.parse(readFileSync(path, 'utf8')) as CpuProfile, FUNCTIONS).map(heavyRow);
    return {
      bench: 'profile (main thread while moves come on 64 connections; idle time left out)',
      rows: [...rows, { what: 'moves accepted under the profiler', unit: 'moves/s', values: [perSecond] }],
      verdicts: [],
      notes: [`the whole profile, for Chrome's developer tools or speedscope: ${path}`],
    };
  });
}

/** Finds the main thread's profile; each thread writes one: CPU.<date>.<time>.<pid>.<thread>.<number>.cpuprofile. */
function mainThreadsFile(folder: string): string {
  const name = readdirSync(folder).find((each) => /^CPU\.\d+\.\d+\.\d+\.0\.\d+\.cpuprofile$/.test(each));
  if (name === undefined) throw new Error('the service wrote no profile');
  return name;
}

function keep(from: string): string {
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const path = join(BENCH_FOLDER, `moves-${stamp()}.cpuprofile`);
  copyFileSync(from, path);
  return path;
}

function heavyRow({ name, place, share }: HeavyFunction): Row {
  return { what: `${name}  ${place}`, unit: '% of the busy time', values: [100 * share] };
}
