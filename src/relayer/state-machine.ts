// The state machine of a job, one step at a time: a function of the log, the chain and the clock. Whatever was
// interrupted, the next step is found from these again, so recovery is the normal path.
//
//                submit               in a block              confirmed
//   unsigned ------------> pending -------------> mined ------------------> recorded
//      ^                   |  ^ ^                   |                          |
//      |                   |  | '--- reorganized ---|                          |
//      |                   |  '---------------------|------- lost -------------'
//      |  nonce used up    |                        |
//      |-- nonceConsumed <-'                        |
//      '--------------- reverted without a reason --'
//
//   pending         rebroadcast each round; bumpFee when it is stuck; signed again into a gap in the nonces
//   receiptPending  in a block, but its receipt is not available yet: wait
//   nonceConsumed   no block has it: after 3 s recorded if the chain holds the job's event, else as unsigned
//   mined           waits for its confirmations; an explained revert is recorded as failed or raises an alert
//   lost            a reorganization took a recorded transaction off the chain: as pending
//
// A transaction is in the log before it is sent, and a second one for the same job is rejected by the contract: so every
// arrow may be taken again after a crash.
import type { RelayTransaction, ServiceFact } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import type { Hex, Millis } from '../vocabulary/values.ts';
import {
  estimateGas,
  type Receipt,
  readBalance,
  readBlock,
  readCall,
  readReceipt,
  type SendOutcome,
  searchLogs,
  sendRaw,
  tryCall,
} from './chain-client.ts';
import { lowestFreeNonce, type RelayerContext, type RoundContext } from './context.ts';
import { isAlreadyDeployed, isMisconfigured, revertReason, rootOfCall, rootOfResult } from './contracts.ts';
import { type Completion, isLost, type Job } from './jobs.ts';
import { decodeTransaction, networkFees, raisedFees, readTransactionStatus, signTransaction } from './transactions.ts';

/** `recorded`: the outcome is in the log. `sent`: a new transaction is on its way. */
export type Step = 'recorded' | 'sent' | 'waiting';

/** How long a nonce must stay as reported before a job is signed again: nodes behind one RPC differ for a while. */
const NONCE_SETTLING_MILLIS = 3_000;
/** Between two attempts at a call that reverts and must not. */
const RETRY_MILLIS = 5_000;
/** Transactions of different nonces that may revert without a reason before a deployment has failed. */
const UNEXPLAINED_REVERTS_MAX = 3;
const LOST_REPEAT_MILLIS = 60_000;
const ZERO = /^0x0*$/;

export async function advance(job: Job, round: RoundContext): Promise<Step> {
  if (job.outcome !== null) return keepOnChain(job, round);
  const status = await readTransactionStatus(round.rpc, job.submitted, round.nonce);
  if (status.kind !== 'nonceConsumed') round.stopwatches.stop(key('nonce consumed', job));
  switch (status.kind) {
    case 'unsigned':
      return submit(job, round);
    case 'pending':
      return bringOnChain(job, round);
    case 'mined':
      return conclude(job, status.receipt, round);
    case 'receiptPending':
      return 'waiting';
    case 'nonceConsumed':
      return replace(job, round);
    default:
      return unreachable(status);
  }
}

/** unsigned -> pending. */
async function submit(job: Job, round: RoundContext): Promise<Step> {
  if (isRetryDelayed(job, round)) return 'waiting';
  const { rpc, account, chainId } = round;
  const [to, data] = [job.contract, job.call()];
  const estimate = await estimateGas(rpc, { from: account.address, to, data });
  if ('revertData' in estimate) return resolveRevert(job, { data: estimate.revertData, txHash: null }, round);
  const gas = (estimate.gas * 6n) / 5n;
  const fees = await networkFees(rpc, round.head);
  if ((await readBalance(rpc, account.address)) < gas * fees.maxFeePerGas) return raiseFundsAlert(round);
  const nonce = lowestFreeNonce(round);
  return logAndSend(job, await signTransaction(account, { chainId, nonce, to, data, gas, ...fees }), round);
}

/** Logged before it is sent: a crash in between leaves bytes that the next round sends, never a second transaction. */
async function logAndSend(job: Job, transaction: RelayTransaction, round: RoundContext): Promise<Step> {
  const { txHash, nonce } = transaction;
  round.usedNonces.add(nonce);
  await round.forum.record(job.chamberId, job.submission(transaction));
  round.logger.info({ job: job.name, txHash, nonce }, 'relay transaction signed');
  round.stopwatches.start(txHash);
  await send(transaction, round);
  return 'sent';
}

/** Sends a transaction of the log; doing so again is harmless, because its nonce is used once. */
async function send({ rawTransaction }: RelayTransaction, context: RelayerContext): Promise<SendOutcome> {
  const outcome = await sendRaw(context.rpc, rawTransaction);
  if (outcome === 'no_funds') raiseFundsAlert(context);
  else context.alerts.clear('funds');
  return outcome;
}

function raiseFundsAlert({ alerts, account }: RelayerContext): 'waiting' {
  alerts.raise('funds', `relayer account ${account.address} has insufficient funds for gas`);
  return 'waiting';
}

/** pending: above a gap in the nonces nothing is mined, so the transaction is signed again into a gap that stays. */
async function bringOnChain(job: Job, round: RoundContext): Promise<Step> {
  const { stopwatches } = round;
  const nonce = lowestFreeNonce(round);
  const newest = job.submitted.at(-1);
  const isAboveGap = newest !== undefined && nonce < newest.nonce;
  if (!isAboveGap) stopwatches.stop(key('nonce gap', job));
  if (!isAboveGap || stopwatches.elapsed(key('nonce gap', job)) < NONCE_SETTLING_MILLIS) return rebroadcast(job, round);
  const unsigned = { ...decodeTransaction(newest), ...(await networkFees(round.rpc, round.head)) };
  return logAndSend(job, await signTransaction(round.account, { ...unsigned, nonce }), round);
}

/** The same bytes for each nonce that no block has used, even of a recorded job: they may hold up what follows. */
async function rebroadcast(job: Job, round: RoundContext): Promise<Step> {
  const unmined = job.submitted.filter(({ nonce }) => nonce >= round.nonce);
  const newestByNonce = new Map(unmined.map((transaction) => [transaction.nonce, transaction]));
  let step: Step = 'waiting';
  for (const transaction of newestByNonce.values()) {
    const outcome = await send(transaction, round);
    const isStuck = round.stopwatches.elapsed(transaction.txHash) >= round.config.feeBumpSeconds * 1000;
    const isNext = transaction.nonce === round.nonce && outcome !== 'no_funds';
    if (isNext && (isStuck || outcome === 'underpriced')) step = await bumpFee(job, transaction, round);
  }
  return step;
}

/** A higher fee at the same nonce; all hashes are watched. */
async function bumpFee(job: Job, stuck: RelayTransaction, round: RoundContext): Promise<Step> {
  const unsigned = decodeTransaction(stuck);
  const fees = raisedFees(unsigned, await networkFees(round.rpc, round.head));
  if (fees === undefined) return 'waiting';
  return logAndSend(job, await signTransaction(round.account, { ...unsigned, ...fees }), round);
}

/** nonceConsumed: somebody else used the nonce, to the node's knowledge, unless the chain already holds the job's event. */
async function replace(job: Job, round: RoundContext): Promise<Step> {
  if (round.stopwatches.elapsed(key('nonce consumed', job)) < NONCE_SETTLING_MILLIS) return 'waiting';
  const done = await findCompletion(job, round);
  return done === undefined ? submit(job, round) : complete(job, done, round);
}

/** mined -> recorded, once the block has its confirmations. */
async function conclude(job: Job, receipt: Receipt, round: RoundContext): Promise<Step> {
  if ((await confirmedAt(receipt, round)) === undefined) return 'waiting';
  if (!receipt.isSuccess) return concludeReverted(job, receipt, round);
  const done = job.find(receipt.logs.filter(({ address }) => address.toLowerCase() === job.contract.toLowerCase()));
  if (done !== undefined) return complete(job, done, round);
  round.alerts.raise(job.name, `transaction ${receipt.txHash} succeeded without the expected event`);
  return 'waiting';
}

/** The time of the block once it has its confirmations and is still the chain's. */
async function confirmedAt(receipt: Receipt, { rpc, head, config }: RoundContext): Promise<Millis | undefined> {
  if (head.number - receipt.blockNumber + 1 < config.confirmations) return undefined;
  const block = await readBlock(rpc, receipt.blockNumber);
  return block?.hash === receipt.blockHash ? block.at : undefined;
}

/** A mined revert leaves no reason behind, so the call is simulated once more. */
async function concludeReverted(job: Job, { txHash }: Receipt, round: RoundContext): Promise<Step> {
  if (isRetryDelayed(job, round)) return 'waiting';
  const call = { from: round.account.address, to: job.contract, data: job.call() };
  const estimate = await estimateGas(round.rpc, call);
  if ('revertData' in estimate) return resolveRevert(job, { data: estimate.revertData, txHash }, round);
  const attempts = new Set(job.submitted.map(({ nonce }) => nonce)).size;
  if (attempts < UNEXPLAINED_REVERTS_MAX || job.failure === undefined) return submit(job, round);
  return record(job, job.failure(`reverted ${attempts} times without a reason`, txHash), round);
}

interface Revert {
  readonly data: Hex;
  /** null when the call reverted before it was sent. */
  readonly txHash: Hex | null;
}

/** The job may have been done already; if not, a deployment has failed, and a commitment raises an alert. */
async function resolveRevert(job: Job, { data, txHash }: Revert, round: RoundContext): Promise<Step> {
  const { rpc, config } = round;
  const stored = await readCall(rpc, { to: config.registryAddress, data: rootOfCall(job.chamberId) });
  const root = ZERO.test(stored) ? undefined : rootOfResult(stored);
  if (root !== undefined && root !== job.root) {
    return raiseAndRetry(job, `the registry holds a different root, ${root}`, round);
  }
  const done = root === undefined ? undefined : await findCompletion(job, round);
  if (done !== undefined) return complete(job, done, round);
  if (job.failure === undefined || isMisconfigured(data)) return raiseAndRetry(job, revertReason(data), round);
  if (root === undefined) return raiseAndRetry(job, 'the registry no longer holds the chamber’s root', round);
  // The contract's own view counts, whatever the node's index of its events shows so far: missing means unknown.
  const view = { to: job.contract, data: job.doneCall() };
  const isDone = isAlreadyDeployed(data) || !ZERO.test(await tryCall(round.rpc, view));
  if (isDone) return raiseAndRetry(job, 'done on the chain, but its event is missing', round);
  return record(job, job.failure(revertReason(data), txHash), round);
}

function raiseAndRetry(job: Job, reason: string, { alerts, stopwatches }: RoundContext): Step {
  alerts.raise(job.name, reason);
  stopwatches.start(key('retry', job));
  return 'waiting';
}

function isRetryDelayed(job: Job, { stopwatches }: RoundContext): boolean {
  if (!stopwatches.isRunning(key('retry', job))) return false;
  if (stopwatches.elapsed(key('retry', job)) < RETRY_MILLIS) return true;
  stopwatches.stop(key('retry', job));
  return false;
}

/** The job's event counts in any transaction, from any account. */
function findCompletion(job: Job, { rpc }: RoundContext): Promise<Completion | undefined> {
  return searchLogs(rpc, { address: job.contract, topics: job.topics() }, job.find);
}

/** Records the completion when its block has its confirmations. */
async function complete(job: Job, done: Completion, round: RoundContext): Promise<Step> {
  const receipt = await readReceipt(round.rpc, done.txHash);
  const at = receipt === null ? undefined : await confirmedAt(receipt, round);
  return at === undefined ? 'waiting' : record(job, done.fact(at), round);
}

async function record(job: Job, fact: ServiceFact, round: RoundContext): Promise<Step> {
  const { forum, logger, alerts, stopwatches, failed } = round;
  await forum.record(job.chamberId, fact);
  if (fact.type === 'idea.deploy_failed') failed.count++;
  logger.info({ job: job.name, type: fact.type }, 'relay outcome recorded');
  alerts.clear(job.name);
  stopwatches.stop(key('retry', job), ...job.submitted.map(({ txHash }) => txHash));
  return 'recorded';
}

/** recorded: a reorganization, or a development chain that lost its last second, may take it off the chain again. */
async function keepOnChain(job: Job, round: RoundContext): Promise<Step> {
  const { stopwatches, logger } = round;
  const lost = key('lost', job);
  if (!isLost(job, round.nonce)) {
    const mined = job.submitted.filter(({ nonce }) => nonce < round.nonce);
    stopwatches.stop(lost, key('nonce gap', job), ...mined.map(({ txHash }) => txHash));
    return rebroadcast(job, round);
  }
  if (!stopwatches.isRunning(lost) || stopwatches.elapsed(lost) >= LOST_REPEAT_MILLIS) {
    stopwatches.stop(lost);
    stopwatches.start(lost);
    logger.warn({ job: job.name }, 'recorded transaction lost from the chain, rebroadcasting');
  }
  return bringOnChain(job, round);
}

/** The name of a stopwatch. */
function key(what: 'nonce consumed' | 'nonce gap' | 'retry' | 'lost', { name }: Job): string {
  return `${what} ${name}`;
}
