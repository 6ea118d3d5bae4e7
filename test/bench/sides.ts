// What is compared: the service as it is shipped, and floors, each a process that serves HTTP.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Side {
  readonly name: string;
  /** What follows `node` on the command line. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const root = new URL('../../', import.meta.url);
const fromRoot = (path: string) => fileURLToPath(new URL(path, root));

const SERVICE_ENV = { CHAIN: 'none', LOG_LEVEL: 'error', NODE_ENV: 'development' } as const;

/** The service of a checkout that is built, as its `npm start` runs it: exec node [options] program. */
export function serviceOf(folder: string, name: string): Side {
  const { scripts } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { scripts: { start: string } };
  const command = scripts.start.split(' ').slice(2);
  return { name, command: [...command.slice(0, -1), join(folder, `${command.at(-1)}`)], env: SERVICE_ENV };
}

export const SERVICE: Side = serviceOf(fromRoot(''), 'service');

/** The service writing a CPU profile into `folder` when it ends. */
export function profiledService(folder: string): Side {
  return { ...SERVICE, command: ['--cpu-prof', '--cpu-prof-dir', folder, ...SERVICE.command] };
}

export function floor(name: string, ...parts: readonly string[]): Side {
  return { name, command: [fromRoot('test/bench/floors/floor.ts'), ...parts], env: {} };
}

/** A floor that is a separate program. */
function program(name: string, file: string): Side {
  return { name, command: [fromRoot(`test/bench/floors/${file}`)], env: {} };
}

export const FANOUT_FLOOR = program('one prepared frame written to all (the floor)', 'fanout-floor.ts');
export const REPLAY_FLOOR = program('pages of rows, a write each (the floor)', 'replay-floor.ts');
export const LIBSODIUM_FLOOR = floor('hono + libsodium worker + group commit (the floor)', 'hono', 'sodium', 'group');
export const POSTGRES_FLOOR = floor(
  'hono + libsodium worker + one statement a batch (the floor)',
  'hono',
  'sodium',
  'postgres',
);
export const NAIVE_FLOOR = floor('naive: hono + http-message-signatures + noble', 'hono', 'library', 'single');
