// One round of the relayer: read the log and the chain, and advance every open job, and every job that a reorganization
// took off the chain, by a step. Between rounds it keeps nothing that a restart would not find again.
import { isClosed } from '../../projections/phase.ts';
import type { RelayTransaction } from '../vocabulary/service-payloads.ts';
import { readChainId, readHead, readNonce } from './chain-client.ts';
import type { ClosedChamber, RelayerContext, RelayerForum, RoundContext } from './context.ts';
import { isExpectedChain, type VerifiedChain } from './identity.ts';
import { isLost, type Job, jobsOf, transactionsOf } from './jobs.ts';
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

async function readClosed(chamberIds: readonly number[], forum: RelayerForum): Promise<readonly ClosedChamber[]> {
  const chambers = await Promise.all(chamberIds.map((chamberId) => forum.chamber(chamberId)));
  return chambers.filter((chamber) => chamber !== undefined).filter(({ state }) => isClosed(state, forum.now()));
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

/** The newest nonces of the account with their chambers: their transactions may still be taken off the chain. */
interface WatchedNonces {
  /** The chain of the transactions; undefined when there were none. */
  readonly chainId: number | undefined;
  readonly add: (chamber: ClosedChamber) => Promise<readonly RelayTransaction[]>;
  /** Chambers with transactions that the chain does not have, or not any more, in the order in which it takes them. */
  readonly chambersFrom: (nonce: number) => readonly number[];
}

const WATCHED_MAX = 1_000;
const CHAMBERS_ON_CHAIN = 8;

/** Reads back through settled chambers until the chain has what a few of them sent: usually the newest. */
async function readWatchedNonces({ forum, account, signers }: RelayerContext, nonce: number): Promise<WatchedNonces> {
  const chamberIdByNonce = new Map<number, number>();
  const add = async (chamber: ClosedChamber) => {
    const own = await signers.ownOf(account.address, transactionsOf(chamber));
    for (const transaction of own) chamberIdByNonce.set(transaction.nonce, chamber.state.chamberId);
    while (chamberIdByNonce.size > WATCHED_MAX) chamberIdByNonce.delete(Math.min(...chamberIdByNonce.keys()));
    return own;
  };
  const chambersFrom = (first: number) => {
    const missing = [...chamberIdByNonce].filter(([one]) => one >= first).sort(([a], [b]) => a - b);
    return [...new Set(missing.map(([, chamberId]) => chamberId))];
  };
  // More than a round takes: some were open with an alert, and have transactions.
  for (const chamberId of await forum.unsettledChambers(WATCHED_MAX)) {
    for (const chamber of await readClosed([chamberId], forum)) await add(chamber);
  }
  let chainId: number | undefined;
  let onChain = 0;
  for (const chamberId of await forum.settledChambers(WATCHED_MAX)) {
    const chamber = await forum.chamber(chamberId);
    if (chamber === undefined) continue;
    const own = await add(chamber);
    const transactions = transactionsOf(chamber);
    chainId ??= transactions[0]?.chainId;
    const isOnChain = own.length < transactions.length || own.some((transaction) => transaction.nonce < nonce);
    if (isOnChain && ++onChain === CHAMBERS_ON_CHAIN) break;
  }
  return { chainId, add, chambersFrom };
}
