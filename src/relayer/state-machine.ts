// The state machine of a job. Each step is a function of the log, the chain and the clock, so recovery after a crash is the normal path.
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
//   pending         rebroadcast each round; bumpFee when it is stuck; signed again if a lower nonce stays free
//   receiptPending  in a block, but its receipt is not available yet: wait
//   nonceConsumed   no block has it: after 3 s recorded if the chain has the job's event, else unsigned again
//   mined           waits for its confirmations; a revert is resolved (reverts.ts), or unsigned again after a growing pause
//   lost            a reorganization removed a recorded transaction from the chain: pending again
//
// A transaction is in the log before it is sent, and the contract rejects a second one for the same job, so every transition may be repeated
// after a crash. On a shared log the append is rejected unless this node has held the lease since it read the basis of its decision, so a
// node that was frozen sends only transactions of the log.
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

/** A missing receipt means an unknown result, never a failure. */
export async function advance(job: Job, round: RoundContext): Promise<Step> {
  if (job.outcome !== null) return keepOnChain(job, round);
  const { rpc, stopwatches } = round;
  const newest = job.submitted.at(-1);
  if (newest === undefined) return submit(job, round);
  if (isConfirming(job, newest, round)) return 'confirming';
  const receipts = await Promise.all(job.submitted.map(({ txHash }) => readReceipt(rpc, txHash)));
  const mined = receipts.filter((receipt) => receipt !== null);
  // After the job was signed with another nonce, an earlier revert no longer counts.
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

/** Whether the job's transaction was seen in a block, and the account's nonce is still above the transaction's. */
function isConfirming(job: Job, newest: RelayTransaction, { confirmedWith, head, nonce }: RoundContext): boolean {
  return newest.nonce < nonce && head.number < (confirmedWith.get(job.name) ?? 0);
}

/** pending: no transaction above a nonce gap is mined. If a gap remains, the transaction is signed again with the nonce of the gap. */
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

/** Resends the newest transaction of each unused nonce, even of a recorded job, because a gap would block later nonces. */
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
  readonly outcome: SendOutcome;
}

/**
 * Signs the transaction again with the same nonce and a higher fee; all of its hashes are watched. Does so only if the account can pay
 * for it: only the newest transaction of a nonce is rebroadcast, so without funds it would block its cheaper predecessor, even once fees
 * have fallen.
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

/** nonceConsumed: another transaction used the nonce, unless the chain already has the job's event. */
async function replace(job: Job, round: RoundContext): Promise<Step> {
  const elapsed = round.stopwatches.elapsed(key('nonce consumed', job));
  if (!mayTryAgain(job, 'lost their nonces to others', elapsed, round)) return 'waiting';
  const done = await findCompletion(job, round);
  return done === undefined ? submit(job, round) : complete(job, done, round);
}

/** mined -> recorded */
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

/** Uses the later of the chain's time and the clock, so that a restart does not restart the wait. */
function millisSince({ at }: Block, { forum, head }: RoundContext): Millis {
  return Math.max(forum.now(), head.at) - at;
}

/** recorded: a reorganization, or a node restored from older state, may still remove the transaction from the chain. */
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

/** Names a stopwatch or a repeated log line. */
function key(state: 'nonce consumed' | 'nonce gap' | 'lost', { name }: Job): string {
  return `${state} ${name}`;
}
