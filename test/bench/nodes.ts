// Several nodes on one PostgreSQL: moves a second beside a floor on the same server and beside SQLite, what a move costs the node and
// the server, and how long it takes to reach a consumer at another node.
import { randomBytes } from 'node:crypto';
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
import { LIBSODIUM_FLOOR, POSTGRES_FLOOR, SERVICE, type Side } from './sides.ts';
import { bound, compare, type Row } from './verdicts.ts';

const CONNECTIONS = 64;
const AGENTS = 3;
const MOVES_PER_CONNECTION = 250;
const PACED_MOVES = 400;
const EVERY_MILLIS = 20;
const LINE_BYTES = 1_024;
const WAKE_UP_MS_MAX = 20;
const FLOOR_SHARE_MIN = 0.7;

interface Contest {
  readonly name: string;
  readonly side: Side;
  readonly nodes: number;
  readonly isSpread?: boolean;
  readonly isOnSqlite?: boolean;
}

const SQLITE: Contest = { name: 'SQLite, one process', side: SERVICE, nodes: 1, isOnSqlite: true };
const ONE_NODE: Contest = { name: 'PostgreSQL, one node', side: SERVICE, nodes: 1 };
const FLOOR: Contest = { name: POSTGRES_FLOOR.name, side: POSTGRES_FLOOR, nodes: 1 };
const CONTESTS: readonly Contest[] = [
  SQLITE,
  { name: LIBSODIUM_FLOOR.name, side: LIBSODIUM_FLOOR, nodes: 1, isOnSqlite: true },
  ONE_NODE,
  FLOOR,
  ...[2, 3].flatMap((nodes) => [
    { name: `PostgreSQL, ${nodes} nodes, each chamber at one`, side: SERVICE, nodes },
    { name: `PostgreSQL, ${nodes} nodes, moves of a chamber at all in turn`, side: SERVICE, nodes, isSpread: true },
  ]),
];

interface Figures extends MovesResult {
  /** Microseconds of CPU for each move. */
  readonly nodeMicros: number;
  readonly serverMicros: number;
}

export async function benchNodes(options: Options): Promise<Report> {
  const server = await startPostgres();
  try {
    const wakeUps = await measureInRounds(
      [
        ...['another one', 'the same'].map((node) => {
          const name = `a move at one node to a consumer at ${node}`;
          return { name, measure: () => measureWakeUp(server, node === 'the same' ? 0 : 1, options) };
        }),
        { name: 'a row committed at the same server (the floor)', measure: () => measureCommits(server, options) },
      ],
      options.runs,
    );
    // After those, so that a checkpoint of all this can't slow them down.
    const contests = CONTESTS.filter(({ name }) => options.only.test(name));
    const contenders = contests.map((contest) => {
      return { name: contest.name, measure: () => measureMoves(server, contest, options) };
    });
    const series = await measureInRounds(contenders, options.runs);
    const perSecond = series.map((each) => rowOf(each, 'moves/s', (run) => run.perSecond));
    const tails = series.map((each) => rowOf(each, 'ms p99', ({ latency }) => latency.p99));
    const node = series.map((each) => rowOf(about('service', each), 'µs CPU a move', (run) => run.nodeMicros));
    const database = series.map((each) => rowOf(about('PostgreSQL', each), 'µs CPU a move', (run) => run.serverMicros));
    const medians = wakeUps.map((each) => rowOf(each, 'ms p50', ({ p50 }) => p50));
    const slowest = wakeUps.map((each) => rowOf(each, 'ms p99', ({ p99 }) => p99));
    return {
      bench: `nodes (${CONNECTIONS} connections; PostgreSQL on the same machine)`,
      rows: [perSecond, tails, node, database, medians, slowest].flat(),
      verdicts: [...shareOfFloor(series, perSecond), ...slowest.slice(0, 1).map(wakeUpVerdict)],
    };
  } finally {
    await server.stop();
  }
}

async function measureMoves(server: PostgresServer, contest: Contest, options: Options): Promise<Figures> {
  return withNodes(server, contest, async (nodes) => {
    const [first, ...others] = nodes.map(({ authority }) => authority) as [string, ...string[]];
    const cpu = watchCpu([server.pid(), ...nodes.map(({ pid }) => pid)]);
    const result = await drive({
      kind: 'moves',
      authority: first,
      others,
      isSpread: contest.isSpread ?? false,
      connections: CONNECTIONS,
      agentsPerChamber: AGENTS,
      movesPerConnection: scaled(MOVES_PER_CONNECTION, options),
      rounds: 1,
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

async function measureWakeUp(server: PostgresServer, consumersNode: number, options: Options) {
  return withNodes(server, { ...ONE_NODE, nodes: 2 }, async (nodes) => {
    const [authority, consumersAt] = [0, consumersNode].map((index) => (nodes[index] as Running).authority);
    const { latency } = await drive({
      kind: 'fanout',
      authority: authority as string,
      consumersAt: consumersAt as string,
      consumers: 1,
      bursts: [],
      pacedMoves: scaled(PACED_MOVES, options),
      everyMillis: EVERY_MILLIS,
    });
    return latency;
  });
}

/** As often as the moves whose wake-ups are measured. */
async function measureCommits(server: PostgresServer, options: Options): Promise<Latencies> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query('CREATE TABLE commits (line bytea)');
  const latencies: number[] = [];
  for (let commit = 0; commit < scaled(PACED_MOVES, options); commit++) {
    const next = sleep(EVERY_MILLIS);
    const sentAt = performance.now();
    await client.query('INSERT INTO commits VALUES ($1)', [Buffer.alloc(LINE_BYTES)]);
    latencies.push(performance.now() - sentAt);
    await next;
  }
  await client.query('DROP TABLE commits');
  await client.end();
  return latenciesOf(latencies);
}

/** On a database of their own. */
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

function shareOfFloor(series: readonly Series<Figures>[], rows: readonly Row[]) {
  const [of, to] = [ONE_NODE, FLOOR].map(({ name }) => rows.find(({ what }) => what === name));
  if (!of || !to) return [];
  const target = { is: 'at least', value: FLOOR_SHARE_MIN } as const;
  return [compare({ what: 'PostgreSQL: one node / floor', of, to, target, objections: failuresOf(series) })];
}

function wakeUpVerdict(of: Row) {
  return bound({ what: 'wake-up across nodes, p99', of, target: { is: 'at most', value: WAKE_UP_MS_MAX } });
}
