// The compared sides: the service as shipped, and baselines, each a process that serves HTTP.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Side {
  readonly name: string;
  /** The arguments of `node`. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const root = new URL('../../', import.meta.url);
const fromRoot = (path: string) => fileURLToPath(new URL(path, root));

const SERVICE_ENV = { CHAIN: 'none', LOG_LEVEL: 'error', NODE_ENV: 'development' } as const;

/** The service of a built checkout, run as its `npm start` does; release 0.1.0 has the command in package.json. */
export function serviceOf(folder: string, name: string): Side {
  const script = ['deploy/start.sh', 'package.json'].map((path) => join(folder, path)).find(existsSync) ?? '';
  const [, options = '', program = ''] = /exec node (.*) (.*main\.js)/.exec(readFileSync(script, 'utf8')) ?? [];
  return { name, command: [...options.split(' '), join(folder, program)], env: SERVICE_ENV };
}

export const SERVICE: Side = serviceOf(fromRoot(''), 'service');

const NO_CHECKPOINTS = new URL('baselines/without-checkpoints.ts', import.meta.url).href;

/** The service as shipped, but without publishing checkpoints. */
export const WITHOUT_CHECKPOINTS: Side = {
  ...SERVICE,
  name: 'service without checkpoints',
  command: ['--import', NO_CHECKPOINTS, ...SERVICE.command],
};

/** The service, which writes a CPU profile into `folder` when it exits. */
export function profiledService(folder: string): Side {
  return { ...SERVICE, command: ['--cpu-prof', '--cpu-prof-dir', folder, ...SERVICE.command] };
}

export function baseline(name: string, ...parts: readonly string[]): Side {
  return { name, command: [fromRoot('test/bench/baselines/baseline.ts'), ...parts], env: {} };
}

/** A baseline in a separate program. */
function program(name: string, file: string): Side {
  return { name, command: [fromRoot(`test/bench/baselines/${file}`)], env: {} };
}

export const FANOUT_BASELINE = program('one prepared frame written to all (the baseline)', 'fanout-baseline.ts');
export const REPLAY_BASELINE = program('pages of rows, a write each (the baseline)', 'replay-baseline.ts');
export const LIBSODIUM_BASELINE = baseline(
  'hono + libsodium worker + group commit (the baseline)',
  'hono',
  'sodium',
  'group',
);
export const POSTGRES_BASELINE = baseline(
  'hono + libsodium worker + one statement a batch (the baseline)',
  'hono',
  'sodium',
  'postgres',
);
export const NAIVE_BASELINE = baseline('naive: hono + http-message-signatures + noble', 'hono', 'library', 'single');
