// Runs three service nodes and a load during a scenario, and then checks the log.
import { latenciesOf } from '../bench/figures.ts';
import { checkLog } from './check.ts';
import { type CheckpointWatch, watchCheckpoints } from './checkpoint-watch.ts';
import { startCluster } from './cluster.ts';
import { type Seen, startLoad } from './load.ts';
import { CALM, SCENARIOS, type Scenario, type Time } from './scenarios.ts';

const NODES = 3;

export interface ChaosOptions {
  readonly scenario: string;
  readonly millis: number;
  readonly clients: number;
  readonly seed: number;
  /** The path of the service's program. */
  readonly program: string;
  /** An empty database, for scenarios that do not touch its server. */
  readonly databaseUrl?: string;
}

export interface Outcome {
  /** Counts of moves, reads and failures. */
  readonly answered: number;
  readonly disturbances: number;
  readonly problems: readonly string[];
  readonly figures: readonly string[];
}

/** Returns undefined if the scenario needs programs that are not installed. */
export async function runChaos(options: ChaosOptions): Promise<Outcome | undefined> {
  const { scenario, millis, clients, seed, program, databaseUrl } = options;
  const stage = await (SCENARIOS[scenario] as Scenario)(databaseUrl);
  if (stage === undefined) return undefined;
  try {
    const cluster = await startCluster({ databaseUrl: stage.databaseUrl, nodes: NODES, program });
    try {
      const urls = cluster.nodes.map(({ url }) => url);
      const load = await startLoad({ urls, clients, seed });
      const watch = await watchCheckpoints(urls.map((url) => () => url));
      const disturbances = await stage.disturb(cluster, timer(millis)).finally(watch.stop);
      const seen = await load.stop();
      const failures = scenario === CALM ? seen.unavailable + seen.broken : 0;
      const problems = [
        ...cluster.problems,
        ...(failures === 0 ? [] : [`${failures} requests failed although no fault was injected`]),
        ...(await checkLog(urls, seen)),
        ...(await watch.forks()),
      ];
      const figures = [...figuresOf(seen, watch, millis), `disturbances: ${disturbances}`, ...stage.notes()];
      return { answered: seen.millis.length, disturbances, problems, figures };
    } finally {
      await cluster.stop();
    }
  } finally {
    await stage.close();
  }
}

function timer(millis: number): Time {
  const endsAt = performance.now() + millis;
  const rest = async (forMillis: number) => {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, Math.min(forMillis, endsAt - performance.now()))));
    return performance.now() < endsAt;
  };
  return { millis, rest };
}

function figuresOf({ millis, ...counts }: Seen, watch: CheckpointWatch, ranMillis: number): readonly string[] {
  const { p50, p99, max } = latenciesOf(millis);
  const seconds = ranMillis / 1_000;
  return [
    `${millis.length} moves answered (${Math.round(millis.length / seconds)}/s), ${counts.receipts.length} receipts, ${counts.reads} reads`,
    `ms until answered: p50 ${Math.round(p50)}, p99 ${Math.round(p99)}, slowest ${Math.round(max)}`,
    `503: ${counts.unavailable}, broken or silent connections: ${counts.broken}, longest time without a response: ${Math.round(counts.longestGapMillis)} ms`,
    `lines that one consumer of all chambers received: ${counts.lines.length}`,
    `checkpoints that the nodes served: ${watch.count()}, the largest of ${watch.largest()} lines`,
  ];
}
