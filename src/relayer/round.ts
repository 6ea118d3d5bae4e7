// One round of the relayer: reads the log and the chain, and advances every open job, and every job that a reorganization has undone, by
// one step. Jobs are independent: their steps run concurrently, a failing job is paused, and a round does not wait for a step that hangs.
// All state between rounds can be rebuilt after a restart.
import { setTimeout as pause } from 'node:timers/promises';
import { detach } from '../process/detach.ts';
import { countAttempts } from './attempts.ts';
import { readBalance, readChainId, readHead, readNonce } from './chain-client.ts';
import type { ClosedChamber, RelayerContext, RoundContext } from './context.ts';
import { offerFees } from './fees.ts';
import { isExpectedChain, type VerifiedChain } from './identity.ts';
import { isLost, type Job, jobsOf, readClosed, transactionsOf } from './jobs.ts';
import { readWatchedNonces, type WatchedNonces } from './nonces.ts';
import type { Step } from './outcomes.ts';
import { RpcError } from './rpc.ts';
import { advance } from './state-machine.ts';
import { FEE, FUNDS } from './submit.ts';

export interface RoundMemory extends VerifiedChain {
  /** Read in the first round. */
  watched: WatchedNonces | undefined;
  /** Chambers with transactions that were in no block in the last round. The next round reads them once more. */
  unmined: readonly number[];
  /** The number of open or lost jobs, by chamber. */
  readonly pending: Map<number, number>;
  /** Chambers in which no job can be signed now, because each job waits for blocks or is paused. */
  waiting: number;
  /** Whether a transaction or an outcome was logged since the last round, so that the next round starts at once. */
  isProgress: boolean;
  /** An error of the log, which affects all jobs. */
  fault: { readonly error: unknown } | undefined;
}

export function newMemory(): RoundMemory {
  const chain = { watched: undefined, unmined: [], chainId: undefined, verifiedHead: undefined };
  return { ...chain, pending: new Map(), waiting: 0, isProgress: false, fault: undefined };
}

/** If a job's requests fail for longer than this, it raises an alert. */
const REJECTION_MILLIS = 30_000;
/** The first pause of a job after a failed request. */
const REJECTION_PAUSE_MILLIS = 100;
/** How long a round waits for its steps; unfinished steps continue during the next rounds. */
const ROUND_MILLIS_MAX = 250;

/** Returns false and does nothing if the chain is not the expected one. */
export async function runRound(
  chamberIds: readonly number[],
  context: RelayerContext & Pick<RoundContext, 'lease'>,
  memory: RoundMemory,
): Promise<boolean> {
  const opened = await openRound(chamberIds, context, memory);
  if (opened === undefined) return false;
  const { chambers, round, readAfter } = opened;
  memory.pending.clear();
  memory.waiting = 0;
  const over = new AbortController();
  const note = (error: unknown) => {
    memory.fault ??= { error };
  };
  const steps = chambers.map((chamber) => advanceChamber({ chamber, readAfter }, round, memory).catch(note));
  const limit = pause(ROUND_MILLIS_MAX, undefined, { signal: over.signal }).catch(() => {});
  await Promise.race([Promise.all(steps), limit]);
  over.abort();
  const { fault, pending } = memory;
  memory.fault = undefined;
  if (fault !== undefined) throw fault.error;
  if ([...pending.values()].every((count) => count === 0)) {
    for (const subject of [FUNDS, FEE]) context.alerts.clear(subject);
    // Only metrics depend on this, and the next round reports a failing RPC.
    detach(context.funds.update(round), () => {});
  }
  return true;
}

/** Reads the nonce before any receipt, so that a used nonce without a receipt is never just a race between the two reads. */
async function openRound(
  chamberIds: readonly number[],
  context: RelayerContext & Pick<RoundContext, 'lease'>,
  memory: RoundMemory,
) {
  const { rpc, account, forum, signers, queue, highestNonces, config, board } = context;
  const { ended } = queue;
  const { logicalTime: readAfter } = board;
  const chainId = await readChainId(rpc);
  const [nonce, head] = await Promise.all([readNonce(rpc, account.address), readHead(rpc)]);
  highestNonces.observe(account.address, nonce);
  const open = await readClosed(chamberIds, forum);
  const watched = memory.watched ?? (await readWatchedNonces(context, nonce));
  const loggedChainId = open.flatMap(transactionsOf)[0]?.chainId ?? watched.chainId;
  if (!(await isExpectedChain({ chainId, head, loggedChainId }, context, memory))) return undefined;
  const unmined = watched.chambersFrom(nonce);
  const others = [...new Set([...memory.unmined, ...unmined])].filter((chamberId) => !chamberIds.includes(chamberId));
  memory.watched = watched;
  memory.unmined = unmined;
  // Settled chambers with lost transactions come first, because their nonces are lower.
  const chambers = [...(await readClosed(others, forum)), ...open];
  for (const chamber of chambers) await watched.add(chamber);
  await queue.update(nonce, await signers.ownOf(account.address, chambers.flatMap(transactionsOf)), ended);
  const fees = once(() => offerFees(rpc, head, config));
  const balance = once(() => readBalance(rpc, account.address));
  const round: RoundContext = { ...context, chainId, head, nonce, fees, balance };
  return { chambers, round, readAfter };
}

/** Caches the result, but not an error. */
function once<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let reading: Promise<Value> | undefined;
  return () => {
    reading ??= read().catch((error: unknown) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
}

/** A chamber, and the board's logical time before it was read. */
interface Reading {
  readonly chamber: ClosedChamber;
  readonly readAfter: number;
}

async function advanceChamber(reading: Reading, round: RoundContext, memory: RoundMemory): Promise<void> {
  const { alerts, pauses } = round;
  const jobs = await countPending(reading.chamber, round, memory);
  const isWaiting = ({ outcome, submitted, name }: Job) =>
    outcome !== null || submitted.length > 0 || pauses.has(name) || alerts.has(name);
  if (jobs.every(isWaiting)) memory.waiting++;
  await Promise.all(jobs.map((job) => runStep({ job, readAfter: reading.readAfter }, round, memory)));
}

async function countPending(chamber: ClosedChamber, round: RoundContext, memory: RoundMemory): Promise<readonly Job[]> {
  const jobs = await jobsOf(chamber, round);
  const open = jobs.filter((job) => job.outcome === null || isLost(job, round.nonce));
  memory.pending.set(chamber.state.chamberId, open.length);
  return jobs;
}

/** If the step records the commitment, the deployments advance in the same round. */
async function runStep(
  { job, readAfter }: Omit<Reading, 'chamber'> & { readonly job: Job },
  round: RoundContext,
  memory: RoundMemory,
): Promise<void> {
  const { board, forum } = round;
  let step: Step | undefined;
  try {
    await board.run(job.name, readAfter, async () => {
      step = await advanceAlone(job, round);
    });
    if (step === 'sent' || step === 'recorded') memory.isProgress = true;
    if (step !== 'recorded') return;
    const { logicalTime } = board;
    const chamber = await forum.chamber(job.chamberId);
    if (chamber === undefined) return;
    if (job.failure === undefined) await advanceChamber({ chamber, readAfter: logicalTime }, round, memory);
    else await countPending(chamber, round, memory);
  } catch (error) {
    memory.fault ??= { error };
  }
}

/** An RPC error pauses only this job. */
async function advanceAlone(job: Job, round: RoundContext): Promise<Step> {
  const { alerts, pauses, repeats, stopwatches, logger } = round;
  if (pauses.isPaused(job.name)) return 'waiting';
  const subject = `${job.name} (RPC)`;
  countAttempts(job, round);
  try {
    const step = await advance(job, round);
    stopwatches.stop(subject);
    alerts.clear(subject);
    repeats.end(subject);
    if (step !== 'deferred') pauses.end(job.name);
    return step;
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const { message: reason, kind } = error;
    const message = kind === 'rejected' ? 'RPC request rejected' : 'RPC request failed';
    repeats.report(subject, reason, (more) => logger.warn({ job: job.name, reason, ...more }, message));
    if (stopwatches.elapsed(subject) >= REJECTION_MILLIS) alerts.raise(subject, reason);
    pauses.defer(job.name, REJECTION_PAUSE_MILLIS);
    return 'deferred';
  }
}
