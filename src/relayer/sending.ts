// Signed transactions on their way: logged, sent, sent again, given a higher fee, or signed into a gap of the nonces. Its
// callers say which jobs are still to be done.
import type { RelayTransaction } from '../vocabulary/events.ts';
import { type SendOutcome, sendRaw } from './chain.ts';
import { networkFees, raisedFees } from './fees.ts';
import type { Job } from './jobs.ts';
import type { Means, Scene, Step } from './scene.ts';
import { readTransaction, signTransaction } from './signer.ts';

/** How long the chain must say something of a nonce before a job is signed anew: nodes behind one RPC differ for a while. */
export const SETTLING_MILLIS = 3_000;

/** Logged before it is sent: a crash in between leaves bytes that the next round sends, never a second transaction. */
export async function logAndSend(job: Job, transaction: RelayTransaction, scene: Scene): Promise<Step> {
  const { txHash, nonce } = transaction;
  await scene.forum.record(job.chamberId, job.submission(transaction));
  scene.logger.info({ job: job.name, txHash, nonce }, 'relay transaction signed');
  scene.waits.elapsed(txHash);
  await send(transaction, scene);
  return 'sent';
}

/** Brings a job that no block has onto the chain: above a gap in the nonces nothing is mined, so it is signed into the gap. */
export async function push(job: Job, scene: Scene): Promise<Step> {
  const newest = job.submitted.at(-1);
  if (newest === undefined || !isAboveGap(job, newest, scene)) return sendAgain(job, scene);
  const unsigned = { ...readTransaction(newest), fees: await networkFees(scene.rpc, scene.head) };
  return logAndSend(job, await signTransaction(scene.account, { ...unsigned, nonce: scene.nonces.take() }), scene);
}

/** Whether a nonce below is free for good: transactions of others that a reorganisation removed, or a node that was wrong. */
function isAboveGap(job: Job, { nonce }: RelayTransaction, { nonces, waits }: Scene): boolean {
  const key = gapKey(job);
  if (nonces.lowest < nonce) return waits.elapsed(key) >= SETTLING_MILLIS;
  waits.end(key);
  return false;
}

/** The newest of each nonce that no block has used, also where the job needs it no more: it may hold up what follows. */
export async function sendAgain(job: Job, scene: Scene): Promise<Step> {
  const unmined = job.submitted.filter(({ nonce }) => nonce >= scene.nonce);
  const newest = new Map(unmined.map((transaction) => [transaction.nonce, transaction]));
  let step: Step = 'waiting';
  for (const transaction of newest.values()) {
    if ((await nudge(job, transaction, scene)) === 'sent') step = 'sent';
  }
  return step;
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

/** Sends a transaction of the log; doing so again is harmless, because its nonce is used once. */
async function send({ rawTransaction }: RelayTransaction, means: Means): Promise<SendOutcome> {
  const outcome = await sendRaw(means.rpc, rawTransaction);
  if (outcome === 'no_funds') lackFunds(means);
  else means.troubles.clear('funds');
  return outcome;
}

export function lackFunds({ troubles, account }: Means): 'waiting' {
  troubles.raise('funds', `the relayer ${account.address} has too little gas money`);
  return 'waiting';
}

export function gapKey({ name }: Job): string {
  return `gap ${name}`;
}
