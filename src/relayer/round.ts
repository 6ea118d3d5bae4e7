// One round of the relayer: read the log and the chain, and advance every open job, and every job that a reorganization
// took off the chain, by a step. Between rounds it keeps nothing that a restart would not find again.
import { readChainId, readHead, readNonce } from './chain-client.ts';
import type { ClosedChamber, RelayerContext, RoundContext } from './context.ts';
import { isExpectedChain, type VerifiedChain } from './identity.ts';
import { isLost, type Job, jobsOf, readClosed, transactionsOf } from './jobs.ts';
import { readWatchedNonces, type WatchedNonces } from './nonces.ts';
import { isRejection } from './rpc.ts';
import { advance, type Step } from './state-machine.ts';

export interface RoundMemory extends VerifiedChain {
  /** Read from the settled chambers in the first round. */
  watched: WatchedNonces | undefined;
  /** Chambers with transactions that no block had: read once more when they have one. */
  unmined: readonly number[];
}

export interface RoundResult {
  /** Something was sent or recorded, so more may follow at once. */
  readonly isProgress: boolean;
  /** Jobs and lost transactions that are not done yet. */
  readonly pending: number;
}

/** An error of the node that lasts longer raises an alert. */
const REJECTION_MILLIS = 30_000;

/** Advances these chambers. undefined when the chain is not the expected one: nothing was done. */
export async function playRound(
  chamberIds: readonly number[],
  context: RelayerContext & Pick<RoundContext, 'lease'>,
  memory: RoundMemory,
): Promise<RoundResult | undefined> {
  const opened = await openRound(chamberIds, context, memory);
  if (opened === undefined) return undefined;
  const { chambers, watched, round } = opened;
  let isProgress = false;
  let pending = 0;
  for (const chamber of chambers) {
    const advanced = await advanceChamber(chamber, round);
    isProgress ||= advanced.isProgress;
    pending += advanced.pending;
    await watched.add(advanced.chamber);
  }
  if (pending === 0) context.alerts.clear('funds');
  return { isProgress, pending };
}

/** The nonce is read before any receipt, so a used nonce and a missing receipt are no race. */
async function openRound(
  chamberIds: readonly number[],
  context: RelayerContext & Pick<RoundContext, 'lease'>,
  memory: RoundMemory,
) {
  const { rpc, account, forum, signers } = context;
  const chainId = await readChainId(rpc);
  const [nonce, head] = await Promise.all([readNonce(rpc, account.address), readHead(rpc)]);
  const open = await readClosed(chamberIds, forum);
  const watched = memory.watched ?? (await readWatchedNonces(context, nonce));
  const loggedChainId = open.flatMap(transactionsOf)[0]?.chainId ?? watched.chainId;
  if (!(await isExpectedChain({ chainId, head, loggedChainId }, context, memory))) return undefined;
  const unmined = watched.chambersFrom(nonce);
  const others = [...new Set([...memory.unmined, ...unmined])].filter((chamberId) => !chamberIds.includes(chamberId));
  memory.watched = watched;
  memory.unmined = unmined;
  // Settled ones with lost transactions first: they have the lower nonces.
  const chambers = [...(await readClosed(others, forum)), ...open];
  const own = await signers.ownOf(account.address, chambers.flatMap(transactionsOf));
  const usedNonces = new Set(own.map((transaction) => transaction.nonce));
  const round: RoundContext = { ...context, chainId, head, nonce, usedNonces };
  return { chambers, watched, round };
}

/** Repeats for as long as outcomes are recorded: the deployments follow the commitment at once. */
async function advanceChamber(
  chamber: ClosedChamber,
  round: RoundContext,
): Promise<RoundResult & { readonly chamber: ClosedChamber }> {
  const jobs = await jobsOf(chamber, round);
  const steps = new Set<Step>();
  for (const job of jobs) steps.add(await advanceAlone(job, round));
  const next = steps.has('recorded') ? await round.forum.chamber(chamber.state.chamberId) : undefined;
  if (next !== undefined) return { ...(await advanceChamber(next, round)), isProgress: true };
  const pending = jobs.filter((job) => job.outcome === null || isLost(job, round.nonce)).length;
  return { chamber, isProgress: steps.has('sent') || steps.has('recorded'), pending };
}

/** A rejection by the node affects this job only; an unavailable node ends the round. */
async function advanceAlone(job: Job, round: RoundContext): Promise<Step> {
  const { alerts, repeats, stopwatches, logger } = round;
  const subject = `${job.name} (RPC)`;
  try {
    const step = await advance(job, round);
    stopwatches.stop(subject);
    alerts.clear(subject);
    repeats.end(subject);
    return step;
  } catch (error) {
    if (!isRejection(error)) throw error;
    const { message: reason } = error;
    repeats.report(subject, reason, (more) => logger.warn({ job: job.name, reason, ...more }, 'RPC request rejected'));
    if (stopwatches.elapsed(subject) >= REJECTION_MILLIS) alerts.raise(subject, reason);
    return 'waiting';
  }
}
