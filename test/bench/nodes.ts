// Several nodes on one PostgreSQL: moves per second against a baseline on the same server and against SQLite, the CPU time of a
// move on node and server, and the delay until a consumer at another node receives it, against the delays of a commit and of the
// machine alone.
import { hash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type PostgresServer, startPostgres } from '../kit/postgres-server.ts';
import { watchCpu } from './cpu-time.ts';
import { type Latencies, latenciesOf } from './figures.ts';
import type { MovesResult } from './load/moves.ts';
import { type Options, scaled } from './options.ts';
import { drive, type Running, start, withFolder } from './processes.ts';
import type { Report } from './report.ts';
import { about, failuresOf, measureInRounds, rowOf, type Series } from './rounds.ts';
import { LIBSODIUM_BASELINE, POSTGRES_BASELINE, SERVICE, type Side } from './sides.ts';
import { bound, compare, type Row } from './verdicts.ts';

const CONNECTIONS = 64;
const AGENTS = 3;
const MOVES_PER_CONNECTION = 250;
const PACED_MOVES = 400;
const EVERY_MILLIS = 20;
const LINE_BYTES = 1_024;
const HASHED_BYTES = 262_144;
const WAKE_UP_MS_MAX = 20;
const BASELINE_SHARE_MIN = 0.7;

export interface Contest {
  readonly name: string;
  readonly side: Side;
  readonly nodes: number;
  readonly isSpread?: boolean;
  readonly isOnSqlite?: boolean;
  readonly connections?: number;
  readonly movesPerConnection?: number;
  readonly wantsReceipts?: boolean;
}

const SQLITE: Contest = { name: 'SQLite, one process', side: SERVICE, nodes: 1, isOnSqlite: true };
const ONE_NODE: Contest = { name: 'PostgreSQL, one node', side: SERVICE, nodes: 1 };
const BASELINE: Contest = { name: POSTGRES_BASELINE.name, side: POSTGRES_BASELINE, nodes: 1 };
const CONTESTS: readonly Contest[] = [
  SQLITE,
  { name: LIBSODIUM_BASELINE.name, side: LIBSODIUM_BASELINE, nodes: 1, isOnSqlite: true },
  ONE_NODE,
  BASELINE,
  ...[2, 3].flatMap((nodes) => [
    { name: `PostgreSQL, ${nodes} nodes, each chamber at one`, side: SERVICE, nodes },
    { name: `PostgreSQL, ${nodes} nodes, moves of a chamber at all in turn`, side: SERVICE, nodes, isSpread: true },
  ]),
];

export interface Figures extends MovesResult {
  /** Microseconds of CPU per move. */
  readonly nodeMicros: number;
  readonly serverMicros: number;
}

interface Paced {
  readonly latency: Latencies;
  /** The delays from the response to a move until its delivery. */
  readonly wakeUp?: Latencies;
}

export async function benchNodes(options: Options): Promise<Report> {
  const server = await startPostgres();
  try {
    const paced = await measureInRounds<Paced>(
      [
        {
          name: 'a move at one node, to a consumer at another one',
          measure: () => measureDelivery(server, 1, options),
        },
        { name: 'a move at one node, to a consumer at the same', measure: () => measureDelivery(server, 0, options) },
        { name: 'a row committed at the same server (the baseline)', measure: () => measureCommits(server, options) },
        { name: 'a hash of 256 KiB (the machine alone)', measure: () => measureHashes(options) },
      ],
      options.runs,
    );
    // The checkpoint is waited for last, so that it cannot slow down the measurements.
    const contests = CONTESTS.filter(({ name }) => options.only.test(name));
    const contenders = contests.map((contest) => {
      return { name: contest.name, measure: () => measureMoves(server, contest, options) };
    });
    const series = await measureInRounds(contenders, options.runs);
    const isPair = [ONE_NODE, BASELINE].every((each) => contests.includes(each));
    const atOnce = isPair ? await measureAtOnce(server, options) : [];
    const perSecond = series.map((each) => rowOf(each, 'moves/s', (run) => run.perSecond));
    const tails = series.map((each) => rowOf(each, 'ms p99', ({ latency }) => latency.p99));
    const node = series.map((each) => rowOf(about('service', each), 'µs CPU a move', (run) => run.nodeMicros));
    const database = series.map((each) => rowOf(about('PostgreSQL', each), 'µs CPU a move', (run) => run.serverMicros));
    const medians = paced.map((each) => rowOf(each, 'ms p50', ({ latency }) => latency.p50));
    const slowest = paced.map((each) => rowOf(each, 'ms p99', ({ latency }) => latency.p99));
    const [across] = paced as [Series<Paced>];
    const wakeUp = about('from its answer on (a wake-up)', across);
    const wakeUps = [
      rowOf(wakeUp, 'ms p50', (run) => run.wakeUp?.p50 ?? Number.NaN),
      rowOf(wakeUp, 'ms p99', (run) => run.wakeUp?.p99 ?? Number.NaN),
    ] as const;
    return {
      bench: `nodes (${CONNECTIONS} connections; PostgreSQL on the same machine)`,
      rows: [perSecond, tails, node, database, atOnce, medians, slowest, wakeUps].flat(),
      verdicts: [...shareOfBaseline(series, perSecond), wakeUpVerdict(wakeUps[1])],
    };
  } finally {
    await server.stop();
  }
}

export async function measureMoves(server: PostgresServer, contest: Contest, options: Options): Promise<Figures> {
  return withNodes(server, contest, async (nodes) => {
    const [first, ...others] = nodes.map(({ authority }) => authority) as [string, ...string[]];
    const cpu = watchCpu([server.pid(), ...nodes.map(({ pid }) => pid)]);
    const result = await drive({
      kind: 'moves',
      authority: first,
      others,
      isSpread: contest.isSpread ?? false,
      connections: contest.connections ?? CONNECTIONS,
      agentsPerChamber: contest.connections === 1 ? 1 : AGENTS,
      movesPerConnection: scaled(contest.movesPerConnection ?? MOVES_PER_CONNECTION, options),
      rounds: 1,
      wantsReceipts: contest.wantsReceipts ?? false,
    }).finally(cpu.end);
    const [serverMillis = 0, ...nodeMillis] = cpu.perSecond(result.span);
    const micros = (millis: number) => (1_000 * millis) / result.perSecond;
    return {
      ...result,
      nodeMicros: micros(nodeMillis.reduce((sum, each) => sum + each, 0)),
      serverMicros: micros(serverMillis),
    };
  });
}

/**
 * Loads one node and its baseline concurrently, each on its own server, so that the machine treats them alike when its speed
 * varies.
 */
async function measureAtOnce(server: PostgresServer, options: Options): Promise<readonly Row[]> {
  const other = await startPostgres();
  try {
    const contests = [
      [ONE_NODE, server],
      [BASELINE, other],
    ] as const;
    const measure = () => Promise.all(contests.map(([contest, on]) => measureMoves(on, contest, options)));
    const [{ runs }] = (await measureInRounds([{ name: 'both at once', measure }], options.runs)) as [
      Series<Figures[]>,
    ];
    return contests.map(([{ name }], index) => {
      const values = runs
        .map((run) => run[index] as Figures)
        .map(({ nodeMicros, serverMicros }) => nodeMicros + serverMicros);
      return { what: `${name}: both at once, with PostgreSQL`, unit: 'µs CPU a move', values };
    });
  } finally {
    await other.stop();
  }
}

async function measureDelivery(server: PostgresServer, consumersNode: number, options: Options): Promise<Paced> {
  return withNodes(server, { ...ONE_NODE, nodes: 2 }, async (nodes) => {
    const [authority, consumersAt] = [0, consumersNode].map((index) => (nodes[index] as Running).authority);
    return drive({
      kind: 'fanout',
      authority: authority as string,
      consumersAt: consumersAt as string,
      consumers: 1,
      bursts: [],
      pacedMoves: scaled(PACED_MOVES, options),
      everyMillis: EVERY_MILLIS,
    });
  });
}

async function measureCommits(server: PostgresServer, options: Options): Promise<Paced> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query('CREATE TABLE commits (line bytea)');
  const line = Buffer.alloc(LINE_BYTES);
  const paced = await pace(options, () => client.query('INSERT INTO commits VALUES ($1)', [line]));
  await client.query('DROP TABLE commits');
  await client.end();
  return paced;
}

/** Repeats constant work; if it takes ten times as long, the machine stalled. */
function measureHashes(options: Options): Promise<Paced> {
  const bytes = Buffer.alloc(HASHED_BYTES);
  return pace(options, () => hash('sha256', bytes));
}

/** Calls `act` at the rate of the moves whose delivery is measured. */
async function pace(options: Options, act: () => unknown): Promise<Paced> {
  const latencies: number[] = [];
  for (let turn = 0; turn < scaled(PACED_MOVES, options); turn++) {
    const next = sleep(EVERY_MILLIS);
    const startedAt = performance.now();
    await act();
    latencies.push(performance.now() - startedAt);
    await next;
  }
  return { latency: latenciesOf(latencies) };
}

/** Runs the nodes on a database of their own. */
async function withNodes<T>(
  server: PostgresServer,
  { side, nodes: count, isOnSqlite }: Contest,
  use: (nodes: readonly Running[]) => Promise<T>,
): Promise<T> {
  const schema = `bench_${randomBytes(6).toString('hex')}`;
  await execute(server.url, `CREATE SCHEMA ${schema}`);
  const url = `${server.url}?options=${encodeURIComponent(`-c search_path=${schema}`)}`;
  const onPostgres = { ...side, env: { ...side.env, DATABASE_URL: url, DATABASE_PATH: '' } };
  return withFolder(async (folder) => {
    const nodes: Running[] = [];
    try {
      for (let node = 0; node < count; node++) {
        nodes.push(await start(isOnSqlite ? side : onPostgres, { databasePath: join(folder, 'bench.db') }));
      }
      return await use(nodes);
    } finally {
      await Promise.all(nodes.map(({ stop }) => stop()));
      await execute(server.url, `DROP SCHEMA ${schema} CASCADE`);
    }
  });
}

async function execute(connectionString: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(sql);
  await client.end();
}

function shareOfBaseline(series: readonly Series<Figures>[], rows: readonly Row[]) {
  const [of, to] = [ONE_NODE, BASELINE].map(({ name }) => rows.find(({ what }) => what === name));
  if (!of || !to) return [];
  const target = { is: 'at least', value: BASELINE_SHARE_MIN } as const;
  return [compare({ what: 'PostgreSQL: one node / baseline', of, to, target, objections: failuresOf(series) })];
}

function wakeUpVerdict(of: Row) {
  return bound({ what: 'wake-up across nodes, p99', of, target: { is: 'at most', value: WAKE_UP_MS_MAX } });
}
