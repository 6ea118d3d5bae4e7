// unsigned -> pending: signs, logs and sends a transaction, in this order. After a crash in between, the next round sends the logged
// bytes and never a second transaction.
import type { RelayTransaction } from '../vocabulary/service-payloads.ts';
import { attemptsOf } from './attempts.ts';
import { orRevert, type Receipt, readGas, type SendOutcome, sendRaw } from './chain-client.ts';
import type { RelayerContext, RoundContext } from './context.ts';
import type { Job } from './jobs.ts';
import { complete, defer, findCompletion, record, type Step } from './outcomes.ts';
import { MAY_BE_DONE, mayBeDone, resolveRevert } from './reverts.ts';
import { costOf, decodeTransaction, signTransaction, type UnsignedTransaction } from './transactions.ts';

/** A deployment has failed after this many mined reverts without a reason. */
const UNEXPLAINED_REVERTS_MAX = 3;
/** An inner call leaves its caller 1/64 of the gas (EIP-150). */
const GAS_LEFT_DIVISOR = 64n;

/** A mined revert has no reason, so the call is simulated again before it is signed again. */
export async function submit(job: Job, round: RoundContext, mined?: Receipt): Promise<Step> {
  const { rpc, account, queue, simulatedReverts, board } = round;
  if (queue.isFull) return 'waiting';
  const hasFormerTransactions = job.submitted.length === 0 && job.logged.length > 0;
  const done = hasFormerTransactions ? await findCompletion(job, round) : undefined;
  if (done !== undefined) return complete(job, done, round);
  if (job.withheld !== undefined && job.failure !== undefined) {
    return record(job, job.failure(job.withheld, mined?.transactionHash ?? null), round);
  }
  const { contract: to, value } = job;
  await board.ownTurn();
  const data = job.call();
  const estimate = await orRevert(readGas(rpc, { from: account.address, to, data, value }));
  if ('revertData' in estimate) return resolveRevert(job, { ...estimate, mined }, round);
  simulatedReverts.end(job.name);
  if (mined !== undefined && job.failure !== undefined && attemptsOf(job) >= UNEXPLAINED_REVERTS_MAX) {
    if (await mayBeDone(job, round)) return defer(job, MAY_BE_DONE, round);
    const reason = `reverted ${attemptsOf(job)} times without a reason`;
    return record(job, job.failure(reason, mined.transactionHash), round);
  }
  const { gasLimit = 2n * estimate.result } = round.head;
  if (estimate.result > gasLimit) {
    return defer(job, `the call needs ${estimate.result} gas, and a block has ${gasLimit}`, round);
  }
  return signNew(job, { to, data, value, gas: gasFor(job, estimate.result, { mined, gasLimit }) }, round);
}

/** Returns a fifth more than the estimate, or twice the gas of a transaction that ran out of gas, but at most the gas of a block. */
function gasFor(job: Job, estimate: bigint, { mined, gasLimit }: { mined: Receipt | undefined; gasLimit: bigint }) {
  const estimated = (estimate * 6n) / 5n;
  const before = job.submitted.find(({ txHash }) => txHash === mined?.transactionHash);
  const { gas = 0n } = before === undefined ? {} : decodeTransaction(before);
  const isOutOfGas = mined !== undefined && mined.gasUsed >= gas - gas / GAS_LEFT_DIVISOR;
  const wanted = isOutOfGas && 2n * gas > estimated ? 2n * gas : estimated;
  return wanted > gasLimit ? gasLimit : wanted;
}

type Call = Pick<UnsignedTransaction, 'to' | 'data' | 'value' | 'gas'>;

async function signNew(job: Job, call: Call, round: RoundContext): Promise<Step> {
  const { chainId, queue, alerts } = round;
  const offer = await round.fees();
  if ('excess' in offer) {
    alerts.raise(FEE, offer.excess);
    return pauseWithoutAlert(job, round);
  }
  alerts.clear(FEE);
  const balance = await round.balance();
  round.funds.recordCall(call);
  const unsigned = { chainId, ...call, ...offer.fees };
  const cost = costOf(unsigned);
  if (balance < cost) {
    raiseFundsAlert(round);
    return pauseWithoutAlert(job, round);
  }
  const choose = () => {
    const isPaid = balance >= queue.reserved + cost;
    return isPaid && !queue.isFull ? { ...unsigned, nonce: queue.lowestFree } : undefined;
  };
  return signAndSend(job, choose, round);
}

/** Calls `choose` when it is the job's turn in the nonce queue, and signs nothing if it returns undefined. */
export async function signAndSend(
  job: Job,
  choose: () => UnsignedTransaction | undefined,
  round: RoundContext,
): Promise<Step> {
  const signed: RelayTransaction[] = [];
  await round.queue.log(choose, async (unsigned) => {
    await round.board.ownTurn();
    const transaction = await signTransaction(round.account, unsigned);
    round.signers.remember(transaction, round.account.address);
    await round.forum.record(job.chamberId, job.submission(transaction), { root: job.root, lease: round.lease });
    signed.push(transaction);
    return transaction.txHash;
  });
  const [transaction] = signed;
  if (transaction === undefined) return 'waiting';
  const { txHash, nonce } = transaction;
  round.spending.countSigned();
  round.logger.info({ job: job.name, txHash, nonce }, 'relay transaction signed');
  round.stopwatches.start(txHash);
  await send(transaction, round);
  return 'sent';
}

/** Sending a transaction again is harmless, because its nonce can be used only once. */
export async function send({ rawTransaction }: RelayTransaction, context: RelayerContext): Promise<SendOutcome> {
  const outcome = await sendRaw(context.rpc, rawTransaction);
  if (outcome === 'no_funds') raiseFundsAlert(context);
  else context.alerts.clear(FUNDS);
  return outcome;
}

/** Subjects of alerts. */
export const FUNDS = 'funds';
export const FEE = 'fee';
const SHORT_PAUSE_MILLIS = 1_000;

function raiseFundsAlert({ alerts, account }: RelayerContext): void {
  alerts.raise(FUNDS, `relayer account ${account.address} has insufficient funds for gas`);
}

/** Pauses the job without an alert of its own, because a condition that affects all jobs has its own alert. */
function pauseWithoutAlert(job: Job, { pauses }: RelayerContext): Step {
  pauses.defer(job.name, SHORT_PAUSE_MILLIS);
  return 'deferred';
}
