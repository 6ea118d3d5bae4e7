// One round of the relayer: read the log and the chain, and advance every open job, and every job that a reorganization
// took off the chain, by a step. Between rounds it keeps nothing that a restart would not find again.
import type { ChamberState } from '../../projections/chamber.ts';
import { isClosed } from '../../projections/phase.ts';
import { readChainId, readHead, readNonce } from './chain-client.ts';
import type { RelayerContext, RoundContext } from './context.ts';
import { isExpectedChain, type VerifiedChain } from './identity.ts';
import { isLost, type Job, jobsOf, transactionsOf } from './jobs.ts';
import type { ClosedChamber, RelayerForum } from './port.ts';
import { RpcError } from './rpc.ts';
import { advance, type Step } from './state-machine.ts';
import { signedBy } from './transactions.ts';

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

const CHAMBERS_PER_ROUND = 64;
/** An error of the node that lasts longer raises an alert. */
const REJECTION_MILLIS = 30_000;

/** Chambers with open work; those with an alert are not counted, so they hold up no other. */
export function findWork({ forum, alerts }: RelayerContext): Promise<readonly number[]> {
  return forum.unsettledChambers(CHAMBERS_PER_ROUND + alerts.count);
}

/** undefined when the chain is not the expected one: nothing was done. */
export async function playRound(
  chamberIds: readonly number[],
  context: RelayerContext,
  memory: RoundMemory,
): Promise<RoundResult | undefined> {
  const opened = await openRound(chamberIds, context, memory);
  if (opened === undefined) return undefined;
  const { chambers, watched, round } = opened;
  let isProgress = false;
  let pending = 0;
  for (const chamber of chambers) {
    const { jobs, isChanged, state } = await advanceChamber(chamber, round);
    isProgress ||= isChanged;
    pending += jobs.filter((job) => job.outcome === null || isLost(job, round.nonce)).length;
    await watched.add(state);
  }
  if (pending === 0) context.alerts.clear('funds');
  return { isProgress, pending };
}

interface OpenedRound {
  /** Settled ones with lost transactions first: they have the lower nonces. */
  readonly chambers: readonly ClosedChamber[];
  readonly watched: WatchedNonces;
  readonly round: RoundContext;
}

/** The nonce is read before any receipt, so a used nonce and a missing receipt are no race. */
async function openRound(
  chamberIds: readonly number[],
  context: RelayerContext,
  memory: RoundMemory,
): Promise<OpenedRound | undefined> {
  const { rpc, account, forum } = context;
  const chainId = await readChainId(rpc);
  const [nonce, head] = await Promise.all([readNonce(rpc, account.address), readHead(rpc)]);
  const open = await readClosed(chamberIds, forum);
  const watched = memory.watched ?? (await readWatchedNonces(forum, account.address, nonce));
  const logged = open.flatMap(({ state }) => transactionsOf(state.settlement));
  const loggedChainId = logged[0]?.chainId ?? watched.chainId;
  if (!(await isExpectedChain({ chainId, head, loggedChainId }, context, memory))) return undefined;
  memory.watched = watched;
  const unmined = watched.chambersFrom(nonce);
  const others = new Set([...memory.unmined, ...unmined]);
  for (const chamberId of chamberIds) others.delete(chamberId);
  memory.unmined = unmined;
  const chambers = [...(await readClosed([...others], forum)), ...open];
  const transactions = chambers.flatMap(({ state }) => transactionsOf(state.settlement));
  const own = await signedBy(account.address, transactions);
  const usedNonces = new Set(own.map((transaction) => transaction.nonce));
  return { chambers, watched, round: { ...context, chainId, head, nonce, usedNonces } };
}

async function readClosed(chamberIds: readonly number[], forum: RelayerForum): Promise<readonly ClosedChamber[]> {
  const chambers = await Promise.all(chamberIds.map((chamberId) => forum.chamber(chamberId)));
  return chambers.filter((chamber) => chamber !== undefined && isClosed(chamber.state, forum.now())) as ClosedChamber[];
}

interface Advanced {
  /** As they were when nothing more was recorded. */
  readonly jobs: readonly Job[];
  readonly state: ChamberState;
  readonly isChanged: boolean;
}

/** Repeats for as long as outcomes are recorded: the deployments follow the commitment at once. */
async function advanceChamber(chamber: ClosedChamber, round: RoundContext): Promise<Advanced> {
  const { chamberId } = chamber.state;
  let isChanged = false;
  for (let current = chamber; ; ) {
    const jobs = await jobsOf(current, round.config, round.account.address);
    const steps = new Set<Step>();
    for (const job of jobs) steps.add(await advanceAlone(job, round));
    isChanged ||= steps.has('sent') || steps.has('recorded');
    const next = steps.has('recorded') ? await round.forum.chamber(chamberId) : undefined;
    if (next === undefined) return { jobs, state: current.state, isChanged };
    current = next;
  }
}

/** A node that rejects one job holds up no other; a node that is unavailable ends the round. */
async function advanceAlone(job: Job, round: RoundContext): Promise<Step> {
  const { alerts, stopwatches, logger } = round;
  const subject = `${job.name} (RPC)`;
  try {
    const step = await advance(job, round);
    stopwatches.stop(subject);
    alerts.clear(subject);
    return step;
  } catch (error) {
    if (!(error instanceof RpcError) || error.kind !== 'rejected') throw error;
    logger.warn({ job: job.name, reason: error.message }, 'RPC request rejected');
    if (stopwatches.elapsed(subject) >= REJECTION_MILLIS) alerts.raise(subject, error.message);
    return 'waiting';
  }
}

/** The newest nonces of the account with their chambers: their transactions may still be taken off the chain. */
interface WatchedNonces {
  /** The chain of the transactions; undefined when there were none. */
  readonly chainId: number | undefined;
  readonly add: (state: ChamberState) => Promise<void>;
  /** Chambers with transactions that the chain does not have, or not any more, in the order in which it takes them. */
  readonly chambersFrom: (nonce: number) => readonly number[];
}

const CHAMBERS_FIRST = 8;
const CHAMBERS_FACTOR = 4;
const WATCHED_MAX = 1_000;

/** Reads back through settled chambers until the chain has what they sent: usually the newest few. */
async function readWatchedNonces(forum: RelayerForum, account: `0x${string}`, nonce: number): Promise<WatchedNonces> {
  const chamberIdByNonce = new Map<number, number>();
  const add = async ({ chamberId, settlement }: ChamberState) => {
    const own = await signedBy(account, transactionsOf(settlement));
    for (const transaction of own) chamberIdByNonce.set(transaction.nonce, chamberId);
    while (chamberIdByNonce.size > WATCHED_MAX) chamberIdByNonce.delete(Math.min(...chamberIdByNonce.keys()));
    return own;
  };
  const chambersFrom = (first: number) => {
    const missing = [...chamberIdByNonce].filter(([one]) => one >= first).sort(([a], [b]) => a - b);
    return [...new Set(missing.map(([, chamberId]) => chamberId))];
  };
  let chainId: number | undefined;
  for (let limit = CHAMBERS_FIRST, read = 0; ; limit *= CHAMBERS_FACTOR) {
    const chamberIds = await forum.settledChambers(limit);
    let isOnChain = false;
    for (const chamberId of chamberIds.slice(read)) {
      const chamber = await forum.chamber(chamberId);
      if (chamber === undefined) continue;
      const transactions = transactionsOf(chamber.state.settlement);
      const own = await add(chamber.state);
      chainId ??= transactions[0]?.chainId;
      isOnChain ||= own.length < transactions.length || own.some((transaction) => transaction.nonce < nonce);
    }
    if (isOnChain || chamberIds.length < limit)
      return { chainId, add: async (state) => void (await add(state)), chambersFrom };
    read = chamberIds.length;
  }
}
