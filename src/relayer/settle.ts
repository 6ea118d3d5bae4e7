// Brings one job a step further: a function of the log, the chain and the clock. Whatever was interrupted, the next step is
// found anew from these, so recovery is the normal path.
import type { RelayTransaction } from '../vocabulary/events.ts';
import { unreachable } from '../vocabulary/unreachable.ts';
import { estimateGas, readBalance, type SendOutcome, sendRaw } from './chain.ts';
import { networkFees, raisedFees } from './fees.ts';
import type { Job } from './jobs.ts';
import { complete, conclude, explainRevert, findDone, isPaused } from './outcome.ts';
import type { Means, Scene, Step } from './scene.ts';
import { sight } from './sighting.ts';
import { readTransaction, signTransaction } from './signer.ts';

/** How long a nonce must have been somebody else's before a job is signed anew: nodes behind one RPC differ for a while. */
const LATE_RECEIPT_MILLIS = 3_000;

export async function advance(job: Job, scene: Scene): Promise<Step> {
  const sighting = await sight(scene.rpc, job.submitted, scene.nonce);
  if (sighting.kind !== 'overtaken') scene.waits.end(overtakenKey(job));
  switch (sighting.kind) {
    case 'unsigned':
      return submit(job, scene);
    case 'pending':
      return nudge(job, sighting.newest, scene);
    case 'mined': {
      const step = await conclude(job, sighting.receipt, scene);
      return step === 'again' ? submit(job, scene) : step;
    }
    case 'late':
      return 'waiting';
    case 'overtaken':
      return replace(job, scene);
    default:
      return unreachable(sighting);
  }
}

/** Sends a transaction of the log; doing so again is harmless, because its nonce is used once. */
export async function send({ rawTransaction }: RelayTransaction, means: Means): Promise<SendOutcome> {
  const outcome = await sendRaw(means.rpc, rawTransaction);
  if (outcome === 'no_funds') lackFunds(means);
  else means.troubles.clear('funds');
  return outcome;
}

async function submit(job: Job, scene: Scene): Promise<Step> {
  if (isPaused(job, scene)) return 'waiting';
  const { rpc, account, chainId } = scene;
  const { to, data } = job;
  const estimate = await estimateGas(rpc, { from: account.address, to, data });
  if ('revertData' in estimate) return explainRevert(job, estimate.revertData, null, scene);
  const gas = (estimate.gas * 6n) / 5n;
  const fees = await networkFees(rpc, scene.head);
  if ((await readBalance(rpc, account.address)) < gas * fees.maxFeePerGas) return lackFunds(scene);
  const nonce = scene.takeNonce();
  return logAndSend(job, await signTransaction(account, { chainId, nonce, to, data, gas, fees }), scene);
}

/** Logged before it is sent: a crash in between leaves bytes that the next round sends, never a second transaction. */
async function logAndSend(job: Job, transaction: RelayTransaction, scene: Scene): Promise<Step> {
  const { txHash, nonce } = transaction;
  await scene.forum.record(job.chamberId, job.submission(transaction));
  scene.logger.info({ job: job.name, txHash, nonce }, 'relay transaction signed');
  scene.waits.elapsed(txHash);
  await send(transaction, scene);
  return 'sent';
}

/** Sends the same bytes again, and raises the fee of what has been stuck for too long and holds up the rest. */
async function nudge(job: Job, newest: RelayTransaction, scene: Scene): Promise<Step> {
  const outcome = await send(newest, scene);
  const isStuck = scene.waits.elapsed(newest.txHash) >= scene.config.feeBumpSeconds * 1000;
  if (newest.nonce !== scene.nonce || outcome === 'no_funds') return 'waiting';
  return isStuck || outcome === 'underpriced' ? raiseFee(job, newest, scene) : 'waiting';
}

async function raiseFee(job: Job, newest: RelayTransaction, scene: Scene): Promise<Step> {
  const unsigned = readTransaction(newest);
  const fees = raisedFees(unsigned.fees, await networkFees(scene.rpc, scene.head));
  if (fees === undefined) return 'waiting';
  return logAndSend(job, await signTransaction(scene.account, { ...unsigned, fees }), scene);
}

/** Somebody else used the nonce, as far as the node tells: the job is signed anew unless the chain already holds it. */
async function replace(job: Job, scene: Scene): Promise<Step> {
  if (scene.waits.elapsed(overtakenKey(job)) < LATE_RECEIPT_MILLIS) return 'waiting';
  const done = await findDone(job, scene);
  return done === undefined ? submit(job, scene) : complete(job, done, scene);
}

function lackFunds({ troubles, account }: Means): 'waiting' {
  troubles.raise('funds', `the relayer ${account.address} has too little gas money`);
  return 'waiting';
}

function overtakenKey({ name }: Job): string {
  return `overtaken ${name}`;
}
