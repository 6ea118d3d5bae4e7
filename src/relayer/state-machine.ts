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
//      '--------------- reverted without a reason --'
//
//   pending         rebroadcast each round; bumpFee when it is stuck; signed again into a gap in the nonces
//   receiptPending  in a block, but its receipt is not available yet: wait
//   nonceConsumed   no block has it: after 3 s recorded if the chain holds the job's event, else as unsigned
//   mined           waits for its confirmations; an explained revert is recorded as failed or raises an alert
//   lost            a reorganization took a recorded transaction off the chain: as pending
//
// A transaction is in the log before it is sent, and a second one for the same job is rejected by the contract: so every
// arrow may be taken again after a crash. On a shared log the append is rejected unless this node has held the lease since it
// read what it acts on, so a node that was frozen sends nothing but what is in the log.
import { isAddressEqual } from 'viem';
import type { ServiceFact } from '../vocabulary/events.ts';
import type { RelayTransaction } from '../vocabulary/service-payloads.ts';
import type { Hex } from '../vocabulary/values.ts';
import {
  type Block,
  isInBlock,
  orRevert,
  type Receipt,
  readBalance,
  readBlock,
  readCall,
  readGas,
  readNonce,
  readReceipt,
  type SendOutcome,
  searchLogs,
  sendRaw,
} from './chain-client.ts';
import type { RelayerContext, RoundContext } from './context.ts';
import { MISCONFIGURED, revertError, revertReason } from './contracts.ts';
import { type Completion, isLost, type Job } from './jobs.ts';
import { lowestFreeNonce } from './nonces.ts';
import {
  decodeTransaction,
  networkFees,
  raisedFees,
  signTransaction,
  type UnsignedTransaction,
} from './transactions.ts';

/** `recorded`: the outcome is in the log. `sent`: a new transaction is on its way. */
export type Step = 'recorded' | 'sent' | 'waiting';

/** How long a nonce must stay as reported before a job is signed again: nodes behind one RPC differ for a while. */
const NONCE_SETTLING_MILLIS = 3_000;
/** The pause between two attempts at a call that reverts but should not. */
const RETRY_MILLIS = 5_000;
/** Transactions of different nonces that may revert without a reason before a deployment has failed. */
const UNEXPLAINED_REVERTS_MAX = 3;
const ZERO = /^0x0*$/;

/** A missing receipt means unknown, never failed. */
export async function advance(job: Job, round: RoundContext): Promise<Step> {
  if (job.outcome !== null) return keepOnChain(job, round);
  const { rpc, stopwatches } = round;
  const newest = job.submitted.at(-1);
  if (newest === undefined) return submit(job, round);
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

/** unsigned -> pending. A mined revert leaves no reason behind, so its call is simulated once more and then sent again. */
async function submit(job: Job, round: RoundContext, revertedTxHash: Hex | null = null): Promise<Step> {
  const { rpc, account, chainId, stopwatches } = round;
  if (stopwatches.isWithin(key('retry', job), RETRY_MILLIS)) return 'waiting';
  const isFormerOpen = job.submitted.length === 0 && job.logged.length > 0;
  const done = isFormerOpen ? await findCompletion(job, round) : undefined;
  if (done !== undefined) return complete(job, done, round);
  const { contract: to, value } = job;
  const data = job.call();
  const estimate = await orRevert(readGas(rpc, { from: account.address, to, data, value }));
  if ('revertData' in estimate) return resolveRevert(job, { ...estimate, txHash: revertedTxHash }, round);
  const attempts = new Set(job.submitted.map(({ nonce }) => nonce)).size;
  if (revertedTxHash !== null && attempts >= UNEXPLAINED_REVERTS_MAX && job.failure !== undefined) {
    return record(job, job.failure(`reverted ${attempts} times without a reason`, revertedTxHash), round);
  }
  const gas = (estimate.result * 6n) / 5n;
  const fees = await networkFees(rpc, round.head);
  const unsigned = { chainId, nonce: lowestFreeNonce(round), to, data, value, gas, ...fees };
  if ((await readBalance(rpc, account.address)) < costOf(unsigned)) return raiseFundsAlert(round);
  return signAndSend(job, unsigned, round);
}

/** Logged before it is sent: a crash in between leaves bytes that the next round sends, never a second transaction. */
async function signAndSend(job: Job, unsigned: UnsignedTransaction, round: RoundContext): Promise<Step> {
  const transaction = await signTransaction(round.account, unsigned);
  const { txHash, nonce } = transaction;
  round.signers.remember(transaction, round.account.address);
  round.usedNonces.add(nonce);
  await round.forum.record(job.chamberId, job.submission(transaction), { root: job.root, lease: round.lease });
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
  const gap = key('nonce gap', job);
  const nonce = lowestFreeNonce(round);
  const newest = job.submitted.at(-1);
  const isAboveGap = newest !== undefined && nonce < newest.nonce;
  if (!isAboveGap) stopwatches.stop(gap);
  if (!isAboveGap || stopwatches.elapsed(gap) < NONCE_SETTLING_MILLIS) return rebroadcast(job, round);
  const fees = await networkFees(round.rpc, round.head);
  return signAndSend(job, { ...decodeTransaction(newest), ...fees, nonce }, round);
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
  const fees = raisedFees(unsigned, await networkFees(rpc, round.head));
  if (fees === undefined) {
    if (outcome === 'underpriced') alerts.raise(job.name, 'the RPC rejects a fee far above the one that it suggests');
    return 'waiting';
  }
  if ((await readBalance(rpc, account.address)) < costOf({ ...unsigned, ...fees })) {
    alerts.raise(job.name, `relayer account ${account.address} has insufficient funds for a higher fee`);
    return 'waiting';
  }
  alerts.clear(job.name);
  return signAndSend(job, { ...unsigned, ...fees }, round);
}

/** The most that it may take from the account, in wei. */
function costOf({ value = 0n, gas = 0n, maxFeePerGas = 0n }: UnsignedTransaction): bigint {
  return value + gas * maxFeePerGas;
}

/** nonceConsumed: according to the node, another transaction used the nonce, unless the chain already holds the job's event. */
async function replace(job: Job, round: RoundContext): Promise<Step> {
  if (round.stopwatches.elapsed(key('nonce consumed', job)) < NONCE_SETTLING_MILLIS) return 'waiting';
  const done = await findCompletion(job, round);
  return done === undefined ? submit(job, round) : complete(job, done, round);
}

/** mined -> recorded, once the block has its confirmations. */
async function conclude(job: Job, receipt: Receipt, round: RoundContext): Promise<Step> {
  const block = await confirmedBlock(receipt, round);
  if (block === undefined) return 'waiting';
  if (receipt.status !== 1) return submit(job, round, receipt.transactionHash);
  const done = job.find(receipt.logs.filter(({ address }) => isAddressEqual(address, job.contract)));
  if (done !== undefined) return record(job, done.fact(block), round);
  round.alerts.raise(job.name, `transaction ${receipt.transactionHash} succeeded without the expected event`);
  return 'waiting';
}

/** The block once it has its confirmations, if it is still the chain's. */
async function confirmedBlock(receipt: Receipt, { rpc, head, config }: RoundContext): Promise<Block | undefined> {
  if (head.number - receipt.blockNumber + 1 < config.confirmations) return undefined;
  const block = await readBlock(rpc, receipt.blockNumber);
  return block?.hash === receipt.blockHash ? block : undefined;
}

/** The job's event counts in any transaction, from any account. */
function findCompletion(job: Job, { rpc }: RoundContext): Promise<Completion | undefined> {
  return searchLogs(rpc, { address: job.contract, topics: job.topics() }, job.find);
}

/** Records a completion that was found on the chain when its block has its confirmations. */
async function complete(job: Job, { txHash, fact }: Completion, round: RoundContext): Promise<Step> {
  const receipt = await readReceipt(round.rpc, txHash);
  const block = receipt === null ? undefined : await confirmedBlock(receipt, round);
  return block === undefined ? 'waiting' : record(job, fact(block), round);
}

/** The job may have been done already; if not, a deployment has failed, and a commitment raises an alert. */
async function resolveRevert(
  job: Job,
  { revertData, txHash }: { readonly revertData: Hex; readonly txHash: Hex | null },
  round: RoundContext,
): Promise<Step> {
  const { rpc, config } = round;
  const { registryAddress: to, contracts } = config;
  const stored = contracts.readRoot(await readCall(rpc, { to, data: contracts.rootCall(job.chamberId) }));
  const isCommitted = !ZERO.test(stored);
  if (isCommitted && stored !== job.root)
    return retryLater(job, `the registry holds a different root, ${stored}`, round);
  const done = isCommitted ? await findCompletion(job, round) : undefined;
  if (done !== undefined) return complete(job, done, round);
  const error = revertError(revertData);
  if (job.failure === undefined || MISCONFIGURED.has(error)) return retryLater(job, revertReason(revertData), round);
  if (!isCommitted) return retryLater(job, 'the registry no longer holds the chamber’s root', round);
  const isDone = error === 'IdeaAlreadyDeployed' || (await mayBeDone(job, txHash, round));
  if (isDone) return retryLater(job, 'done on the chain, but its event is missing', round);
  return record(job, job.failure(revertReason(revertData), txHash), round);
}

/** The contract’s own view or the receipts count, not the node’s index of its events, which may lag: missing means unknown. */
async function mayBeDone(job: Job, revertedTxHash: Hex | null, round: RoundContext): Promise<boolean> {
  const { rpc } = round;
  if (job.doneCall !== undefined) {
    const view = await orRevert(readCall(rpc, { to: job.contract, data: job.doneCall() }));
    return 'result' in view && !ZERO.test(view.result);
  }
  return revertedTxHash === null && (await isUnaccounted(job, round));
}

/** Whether a nonce of the job is used and none of its transactions at that nonce has a receipt so far. */
async function isUnaccounted({ logged }: Job, { rpc, signers: known }: RoundContext): Promise<boolean> {
  const receipts = await Promise.all(logged.map(({ txHash }) => readReceipt(rpc, txHash)));
  const signers = await Promise.all(logged.map((transaction) => known.of(transaction)));
  const slotOf = (index: number) => `${signers[index]} ${logged[index]?.nonce}`;
  const accounted = new Set(receipts.flatMap((receipt, index) => (receipt === null ? [] : [slotOf(index)])));
  for (const [index, { nonce }] of logged.entries()) {
    const signer = signers[index];
    if (signer === undefined || accounted.has(slotOf(index))) continue;
    if (nonce < (await readNonce(rpc, signer))) return true;
  }
  return false;
}

function retryLater(job: Job, reason: string, { alerts, stopwatches }: RoundContext): Step {
  alerts.raise(job.name, reason);
  stopwatches.start(key('retry', job));
  return 'waiting';
}

async function record(job: Job, fact: ServiceFact, round: RoundContext): Promise<Step> {
  const { forum, lease, logger, alerts, stopwatches, failed } = round;
  await forum.record(job.chamberId, fact, { root: job.root, lease });
  if (fact.type === 'idea.deploy_failed') failed.count++;
  logger.info({ job: job.name, type: fact.type }, 'relay outcome recorded');
  alerts.clear(job.name);
  stopwatches.stop(key('retry', job), ...job.submitted.map(({ txHash }) => txHash));
  return 'recorded';
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
function key(what: 'nonce consumed' | 'nonce gap' | 'retry' | 'lost', { name }: Job): string {
  return `${what} ${name}`;
}
