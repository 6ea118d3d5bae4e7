// Handles a call that reverts in simulation. The job may already be done, the contract may accept the call later, or the deployment has
// failed. A failure is final, so it requires a mined revert with a known reason, or simulated reverts over minutes and blocks.
import type { Hex } from 'viem';
import { orRevert, type Receipt, readCall, readNonce, readReceipt } from './chain-client.ts';
import type { RoundContext } from './context.ts';
import { isRecoverable, revertError, revertReason } from './contracts.ts';
import type { Job } from './jobs.ts';
import { hashAtNonce } from './nonce-user.ts';
import { complete, defer, findCompletion, record, type Step } from './outcomes.ts';
import { hasRawTransaction } from './transactions.ts';

const ZERO = /^0x0*$/;

export const MAY_BE_DONE =
  'the chain may have the token, but its event is missing; if another program used the nonce, an RPC with older state can prove it';

interface Revert {
  readonly revertData: Hex;
  /** The receipt of a transaction that reverted in a block. */
  readonly mined: Receipt | undefined;
}

export async function resolveRevert(job: Job, { revertData, mined }: Revert, round: RoundContext): Promise<Step> {
  const { rpc, config, alerts } = round;
  const { registryAddress: to, contracts } = config;
  const stored = contracts.readRoot(await readCall(rpc, { to, data: contracts.rootCall(job.chamberId) }));
  const isCommitted = !ZERO.test(stored);
  if (isCommitted && stored !== job.root) return defer(job, `the registry holds a different root, ${stored}`, round);
  const done = isCommitted ? await findCompletion(job, round) : undefined;
  if (done !== undefined) return complete(job, done, round);
  const reason = revertReason(revertData);
  if (job.failure === undefined || isRecoverable(revertData)) return defer(job, reason, round);
  if (!isCommitted) return defer(job, 'the registry no longer holds the chamber’s root', round);
  const error = revertError(revertData);
  if (error === 'IdeaAlreadyDeployed' || (await mayBeDone(job, round))) {
    return defer(job, MAY_BE_DONE, round);
  }
  const isProven = mined !== undefined && error !== undefined;
  if (!isProven && !isLasting(job, round))
    return defer(job, `${reason}: recorded as failed if this persists for minutes`, round);
  alerts.clear(job.name);
  return record(job, job.failure(reason, mined?.transactionHash ?? null), round);
}

function isLasting(job: Job, { config, simulatedReverts, head }: RoundContext): boolean {
  return config.isSingleNode === true || simulatedReverts.isLasting(job.name, head, config.confirmations);
}

/** Whether the chain may have the token. The node and its event index may lag, so their answers alone do not rule it out. */
export async function mayBeDone(job: Job, round: RoundContext): Promise<boolean> {
  if (job.doneCall !== undefined) {
    const view = await orRevert(readCall(round.rpc, { to: job.contract, data: job.doneCall() }));
    if ('result' in view && !ZERO.test(view.result)) return true;
  }
  return await isUnaccounted(job, round);
}

/**
 * Whether a nonce of the job was used for an unknown reason: some node has reported it as used, no transaction of the job with this nonce
 * has a receipt, and no confirmed block shows that another transaction used it.
 */
async function isUnaccounted(job: Job, round: RoundContext): Promise<boolean> {
  const logged = job.logged.filter(hasRawTransaction);
  const { rpc, signers: known, highestNonces, head, config } = round;
  const receipts = await Promise.all(logged.map(({ txHash }) => readReceipt(rpc, txHash)));
  const signers = await Promise.all(logged.map((transaction) => known.of(transaction)));
  const slotOf = (index: number) => `${signers[index]} ${logged[index]?.nonce}`;
  const accounted = new Set(receipts.flatMap((receipt, index) => (receipt === null ? [] : [slotOf(index)])));
  for (const [index, { nonce }] of logged.entries()) {
    const signer = signers[index];
    if (signer === undefined || accounted.has(slotOf(index))) continue;
    if (nonce >= highestNonces.observe(signer, await readNonce(rpc, signer))) continue;
    const user = await hashAtNonce(rpc, { account: signer, nonce, newest: head.number - config.confirmations });
    if (user === undefined || logged.some(({ txHash }) => txHash === user)) return true;
  }
  return false;
}
