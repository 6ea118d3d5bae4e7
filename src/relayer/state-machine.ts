// The state machine of a job, one step at a time: a function of the log, the chain and the clock. After an
// interruption the next step follows from these again, so recovery is the normal path.
//
//                submit               in a block              confirmed
//   unsigned ------------> pending -------------> mined ------------------> recorded
//      ^                   |  ^ ^                   |                          |
//      |                   |  | '--- reorganized ---|                          |
//      |                   |  '---------------------|------- lost -------------'
//      |  nonce used up    |                        |
//      |-- nonceConsumed <-'                        |
//      '---------------------- reverted ------------'
//
//   pending         rebroadcast each round; bumpFee when it is stuck; signed again into a gap in the nonces
//   receiptPending  in a block, but its receipt is not available yet: wait
//   nonceConsumed   no block has it: after 3 s recorded if the chain holds the job's event, else as unsigned
//   mined           waits for its confirmations; a revert is resolved (reverts.ts), or as unsigned after a growing pause
//   lost            a reorganization took a recorded transaction off the chain: as pending
//
// A transaction is in the log before it is sent, and a second one for the same job is rejected by the contract: so every
// arrow may be taken again after a crash. On a shared log the append is rejected unless this node has held the lease since it
// read what it acts on, so a node that was frozen sends nothing but what is in the log.
import { isAddressEqual } from 'viem';
import type { RelayTransaction } from '../vocabulary/service-payloads.ts';
import type { Millis } from '../vocabulary/values.ts';
import { mayTryAgain } from './attempts.ts';
import { type Block, isInBlock, type Receipt, readBalance, readReceipt, type SendOutcome } from './chain-client.ts';
import type { RoundContext } from './context.ts';
import { raisedFees } from './fees.ts';
import { isLost, type Job } from './jobs.ts';
import { complete, confirmedBlock, findCompletion, record, type Step } from './outcomes.ts';
import { FEE, send, signAndSend, submit } from './submit.ts';
import { costOf, decodeTransaction } from './transactions.ts';

/** A missing receipt means unknown, never failed. */
export async function advance(job: Job, round: RoundContext): Promise<Step> {
  if (job.outcome !== null) return keepOnChain(job, round);
  const { rpc, stopwatches } = round;
  const newest = job.submitted.at(-1);
  if (newest === undefined) return submit(job, round);
  if (isConfirming(job, newest, round)) return 'confirming';
  const receipts = await Promise.all(job.submitted.map(({ txHash }) => readReceipt(rpc, txHash)));
  const mined = receipts.filter((receipt) => receipt !== null);
  // A reverted one that was signed again at another nonce no longer counts.
  const current = job.submitted.filter(({ nonce }) => nonce === newest.nonce).map(({ txHash }) => txHash);
  const receipt =
    mined.find(({ status }) => status === 1) ?? mined.find((one) => current.includes(one.transactionHash));
  const isUsed = receipt === undefined && newest.nonce < round.nonce;
  const inBlocks = isUsed ? await Promise.all(current.map((txHash) => isInBlock(rpc, txHash))) : [];
  if (isUsed && !inBlocks.includes(true)) return replace(job, round);
  stopwatches.stop(key('nonce consumed', job));
  if (receipt !== undefined) return conclude(job, receipt, round);
  return isUsed ? 'waiting' : bringOnChain(job, round);
}

/** Its transaction was in a block, and still is by the account's nonce. */
function isConfirming(job: Job, newest: RelayTransaction, { confirmedWith, head, nonce }: RoundContext): boolean {
  return newest.nonce < nonce && head.number < (confirmedWith.get(job.name) ?? 0);
}

/** pending: above a gap in the nonces nothing is mined, so the transaction is signed again into a gap that stays. */
async function bringOnChain(job: Job, round: RoundContext): Promise<Step> {
  const { stopwatches, queue, alerts } = round;
  const gap = key('nonce gap', job);
  const newest = job.submitted.at(-1);
  const isAboveGap = newest !== undefined && queue.lowestFree < newest.nonce;
  if (!isAboveGap) stopwatches.stop(gap);
  if (!isAboveGap || !mayTryAgain(job, 'lost their nonces', stopwatches.elapsed(gap), round)) {
    return rebroadcast(job, round);
  }
  const offer = await round.fees();
  if ('excess' in offer) {
    alerts.raise(FEE, offer.excess);
    return 'waiting';
  }
  const unsigned = { ...decodeTransaction(newest), ...offer.fees };
  const choose = () => (queue.lowestFree < newest.nonce ? { ...unsigned, nonce: queue.lowestFree } : undefined);
  return signAndSend(job, choose, round);
}

/** The same bytes for each nonce that no block has used, even of a recorded job: they may block later nonces. */
async function rebroadcast(job: Job, round: RoundContext): Promise<Step> {
  const unmined = job.submitted.filter(({ nonce }) => nonce >= round.nonce);
  const newestByNonce = new Map(unmined.map((transaction) => [transaction.nonce, transaction]));
  let step: Step = 'waiting';
  for (const transaction of newestByNonce.values()) {
    const outcome = await send(transaction, round);
    const isStuck = round.stopwatches.elapsed(transaction.txHash) >= round.config.feeBumpSeconds * 1000;
    const isNext = transaction.nonce === round.nonce && outcome !== 'no_funds';
    if (isNext && (isStuck || outcome === 'underpriced')) step = await bumpFee(job, { transaction, outcome }, round);
  }
  return step;
}

interface Stuck {
  readonly transaction: RelayTransaction;
  /** The outcome of sending it again. */
  readonly outcome: SendOutcome;
}

/**
 * A higher fee at the same nonce; all hashes are watched. It is signed only if the account can pay for it: only the newest of a nonce
 * is sent again, so one that the node rejects for lack of funds would keep back the one before it, even when fees have fallen.
 */
async function bumpFee(job: Job, { transaction, outcome }: Stuck, round: RoundContext): Promise<Step> {
  const { rpc, account, alerts } = round;
  const unsigned = decodeTransaction(transaction);
  const fees = raisedFees(unsigned, await round.fees());
  if (fees === undefined) {
    if (outcome === 'underpriced') alerts.raise(job.name, 'the RPC rejects a fee far above the one that it suggests');
    return 'waiting';
  }
  if ('excess' in fees) {
    alerts.raise(FEE, fees.excess);
    return 'waiting';
  }
  const raised = { ...unsigned, ...fees };
  if ((await readBalance(rpc, account.address)) < costOf(raised)) {
    alerts.raise(job.name, `relayer account ${account.address} has insufficient funds for a higher fee`);
    return 'waiting';
  }
  alerts.clear(FEE);
  alerts.clear(job.name);
  return signAndSend(job, () => raised, round);
}

/** nonceConsumed: according to the node, another transaction used the nonce, unless the chain already holds the job's event. */
async function replace(job: Job, round: RoundContext): Promise<Step> {
  const elapsed = round.stopwatches.elapsed(key('nonce consumed', job));
  if (!mayTryAgain(job, 'lost their nonces to others', elapsed, round)) return 'waiting';
  const done = await findCompletion(job, round);
  return done === undefined ? submit(job, round) : complete(job, done, round);
}

/** mined -> recorded, once the block has its confirmations. */
async function conclude(job: Job, receipt: Receipt, round: RoundContext): Promise<Step> {
  const { alerts, config, confirmedWith, spending } = round;
  const block = await confirmedBlock(receipt, round);
  if (block === undefined) {
    confirmedWith.set(job.name, receipt.blockNumber + config.confirmations - 1);
    return 'confirming';
  }
  spending.charge(job.name, receipt);
  if (receipt.status !== 1) {
    const mayRetry = mayTryAgain(job, 'reverted', millisSince(block, round), round);
    return mayRetry ? submit(job, round, receipt) : 'waiting';
  }
  const done = job.find(receipt.logs.filter(({ address }) => isAddressEqual(address, job.contract)));
  if (done !== undefined) return record(job, done.fact(block), round);
  alerts.raise(job.name, `transaction ${receipt.transactionHash} succeeded without the expected event`);
  return 'waiting';
}

/** By the chain's time or the clock's, whichever is ahead: so a restart does not begin the wait again. */
function millisSince({ at }: Block, { forum, head }: RoundContext): Millis {
  return Math.max(forum.now(), head.at) - at;
}

/** recorded: a reorganization, or a development chain that lost its last second, may take it off the chain again. */
async function keepOnChain(job: Job, round: RoundContext): Promise<Step> {
  const { stopwatches, repeats, logger, alerts } = round;
  const lost = key('lost', job);
  if (!isLost(job, round.nonce)) {
    alerts.clear(job.name);
    const mined = job.submitted.filter(({ nonce }) => nonce < round.nonce);
    stopwatches.stop(key('nonce gap', job), ...mined.map(({ txHash }) => txHash));
    repeats.end(lost);
    return rebroadcast(job, round);
  }
  repeats.report(lost, '', (more) => {
    logger.warn({ job: job.name, ...more }, 'recorded transaction lost from the chain, rebroadcasting');
  });
  return bringOnChain(job, round);
}

/** The name of a stopwatch or a repeated line. */
function key(what: 'nonce consumed' | 'nonce gap' | 'lost', { name }: Job): string {
  return `${what} ${name}`;
}
