// A soak: rounds of use in four quarters against a service in another process, which is measured after each round. Chambers and
// traffic are the same in every quarter, so the resources of the process must be the same, too.
import { Agent as Connections } from 'node:http';
import { ChainCalls } from './chain-calls.ts';
import { type Companions, openCompanions } from './companions.ts';
import { growthProblems, type Row, rowOf } from './figures.ts';
import { type MeasuredService, startMeasured } from './measured-service.ts';
import { registerAgents } from './players.ts';
import { playRound } from './round.ts';

export interface SoakOptions {
  /** The folder in which the service runs; it must be empty. */
  readonly folder: string;
  /** Settings that select the service's store. */
  readonly store: Readonly<Record<string, string>>;
  /** The number of rounds per quarter, at least one. */
  readonly roundsPerQuarter: number;
  readonly chambersPerRound: number;
  /** The number of RPC calls of the service and the soak in the whole run. */
  readonly rpcCalls: number;
  readonly pageLoadsPerRound: number;
  /** The milliseconds for which the chain is frozen, in the two compared quarters, before it is killed. */
  readonly freezeMillis: number;
  /** A folder for heap snapshots after the second quarter and at the end. */
  readonly snapshots?: string | undefined;
  readonly onQuarter?: (quarter: number, row: Row) => void;
}

const QUARTERS = 4;
const REGULARS = 16;
const IDLE_AGENTS = 16;
/** The maximum repetitions of a log line in one round, because a lasting condition must not be logged repeatedly. */
const LINE_REPEATS_MAX = 2;

/** Runs the soak, and returns the problems. */
export async function runSoak({ folder, store, onQuarter, ...plan }: SoakOptions): Promise<readonly string[]> {
  const service = await startMeasured(folder, store);
  const kept = Array.from({ length: plan.chambersPerRound }, () => new Connections({ keepAlive: true, maxSockets: 1 }));
  const problems: string[] = [];
  let companions: Companions | undefined;
  try {
    const seeds = await registerAgents(service, REGULARS + IDLE_AGENTS);
    companions = openCompanions(service, seeds);
    const chain = await ChainCalls.open(service.url);
    const stage: SoakContext = { ...plan, service, kept, chain, regulars: seeds.slice(0, REGULARS), problems };
    const rows: Row[] = [];
    for (let quarter = 1; quarter <= QUARTERS; quarter++) {
      const row = await playQuarter(stage, quarter);
      rows.push(row);
      onQuarter?.(quarter, row);
    }
    problems.push(...companions.problems(), ...growthProblems(rows));
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    problems.push(`the run failed: ${reason}; the last line of the log: ${service.log.last}`);
  }
  companions?.close();
  for (const each of kept) each.destroy();
  const exit = await service.stop();
  return exit === 0 ? problems : [...problems, `the service exited with ${exit}: ${service.log.last}`];
}

interface SoakContext extends Omit<SoakOptions, 'folder' | 'store' | 'onQuarter'> {
  readonly service: MeasuredService;
  readonly regulars: readonly Uint8Array[];
  readonly kept: readonly Connections[];
  readonly chain: ChainCalls;
  readonly problems: string[];
}

async function playQuarter(stage: SoakContext, quarter: number): Promise<Row> {
  const { roundsPerQuarter, freezeMillis, service, snapshots, problems } = stage;
  const rounds: Row[] = [];
  for (let round = 1; round <= roundsPerQuarter; round++) {
    const isLast = round === roundsPerQuarter;
    const startedAt = performance.now();
    const linesBefore = service.log.lines;
    const isCompared = quarter % 2 === 0;
    const faults = { freezeMillis: isCompared && round === 1 ? freezeMillis : 0, isKilled: isCompared && isLast };
    const work = await playRound({ ...stage, ...faults });
    const isShown = isCompared && isLast && snapshots !== undefined;
    const measured = await service.measure(isShown ? `${snapshots}/quarter-${quarter}.heapsnapshot` : undefined);
    const share = (quarter - 1 + round / roundsPerQuarter) / QUARTERS;
    const callsBefore = stage.chain.total;
    const rpcCalls = (await stage.chain.complete(share * stage.rpcCalls, measured.rpcCalls)) - callsBefore;
    problems.push(...service.log.takeRepeated(LINE_REPEATS_MAX));
    const seconds = (performance.now() - startedAt) / 1_000;
    rounds.push({ ...work, ...measured.figures, rpcCalls, logLines: service.log.lines - linesBefore, seconds });
  }
  return rowOf(rounds);
}
