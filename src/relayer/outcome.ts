// How a job ends: by its event in a block that has its confirmations, or by a revert that is explained.
import type { ServiceFact } from '../vocabulary/events.ts';
import type { Hex, Millis } from '../vocabulary/values.ts';
import { estimateGas, type Receipt, readBlock, readCall, readHead, readReceipt, tryCall } from './chain.ts';
import { isAlreadyDeployed, isMisconfigured, revertReason, rootOfCall, rootOfResult } from './contracts.ts';
import type { Completion, Job } from './jobs.ts';
import { findInLogs } from './log-search.ts';
import type { Scene, Step } from './scene.ts';

/** Between two attempts at a call that reverts and must not. */
const INSIST_MILLIS = 5_000;
/** Transactions of different nonces that may revert without a reason before a deployment has failed. */
const UNEXPLAINED_REVERTS_MAX = 3;
const ZERO = /^0x0*$/;

/** Judges a transaction that is in a block; `again` when it reverted without a reason that still holds. */
export async function conclude(job: Job, receipt: Receipt, scene: Scene): Promise<Step | 'again'> {
  if ((await confirmedAt(receipt, scene)) === undefined) return 'waiting';
  if (!receipt.isSuccess) return concludeReverted(job, receipt, scene);
  const done = job.find(receipt.logs.filter(({ address }) => address.toLowerCase() === job.to.toLowerCase()));
  if (done !== undefined) return complete(job, done, scene);
  scene.troubles.raise(job.name, `transaction ${receipt.txHash} succeeded without the event that was due`);
  return 'waiting';
}

/** Looks for the job's event among all blocks up to this moment: it counts whoever's transaction it was. */
export async function findDone(job: Job, { rpc }: Scene): Promise<Completion | undefined> {
  return findInLogs(rpc, job, (await readHead(rpc)).number);
}

/** Records the completion when its block has its confirmations. */
export async function complete(job: Job, done: Completion, scene: Scene): Promise<Step> {
  const receipt = await readReceipt(scene.rpc, done.txHash);
  const at = receipt === null ? undefined : await confirmedAt(receipt, scene);
  return at === undefined ? 'waiting' : record(job, done.fact(at), scene);
}

/** A call that reverts may have been done already; else a deployment has failed, and a commitment calls for help. */
export async function explainRevert(job: Job, data: Hex, txHash: Hex | null, scene: Scene): Promise<Step> {
  const root = await readRoot(job, scene);
  if (root !== undefined && root !== job.root)
    return callForHelp(job, `the registry holds another root, ${root}`, scene);
  const done = root === undefined ? undefined : await findDone(job, scene);
  if (done !== undefined) return complete(job, done, scene);
  if (job.failure === undefined || isMisconfigured(data)) return callForHelp(job, revertReason(data), scene);
  if (root === undefined) return callForHelp(job, 'the registry does not hold the chamber’s root any more', scene);
  if (await isDone(job, data, scene))
    return callForHelp(job, 'it is done on the chain, but its event is missing', scene);
  return record(job, job.failure(revertReason(data), txHash), scene);
}

/** Whether a call that reverted was tried so recently that the next attempt has to wait. */
export function isPaused(job: Job, { waits }: Scene): boolean {
  const key = pauseKey(job);
  if (!waits.isOn(key)) return false;
  if (waits.elapsed(key) < INSIST_MILLIS) return true;
  waits.end(key);
  return false;
}

/** A mined revert leaves no reason behind, so the call is tried once more without sending it. */
async function concludeReverted(job: Job, receipt: Receipt, scene: Scene): Promise<Step | 'again'> {
  if (isPaused(job, scene)) return 'waiting';
  const again = await estimateGas(scene.rpc, { from: scene.account.address, to: job.to, data: job.data });
  if ('revertData' in again) return explainRevert(job, again.revertData, receipt.txHash, scene);
  const attempts = new Set(job.submitted.map(({ nonce }) => nonce)).size;
  if (attempts < UNEXPLAINED_REVERTS_MAX || job.failure === undefined) return 'again';
  return record(job, job.failure(`reverted ${attempts} times without a reason`, receipt.txHash), scene);
}

/** The time of the block once it has its confirmations and is still the chain's. */
async function confirmedAt(receipt: Receipt, { rpc, head, config }: Scene): Promise<Millis | undefined> {
  if (head.number - receipt.blockNumber + 1 < config.confirmations) return undefined;
  const block = await readBlock(rpc, receipt.blockNumber);
  return block?.hash === receipt.blockHash ? block.at : undefined;
}

async function record(job: Job, fact: ServiceFact, { forum, logger, troubles, waits }: Scene): Promise<Step> {
  await forum.record(job.chamberId, fact);
  logger.info({ job: job.name, type: fact.type }, 'relay outcome recorded');
  troubles.clear(job.name);
  waits.end(pauseKey(job), ...job.submitted.map(({ txHash }) => txHash));
  return 'recorded';
}

/** What the contract itself says, whatever the node's index of its events tells so far: missing means unknown, not failed. */
async function isDone({ to, doneCall }: Job, revertData: Hex, { rpc }: Scene): Promise<boolean> {
  return isAlreadyDeployed(revertData) || !ZERO.test((await tryCall(rpc, { to, data: doneCall })) ?? '0x');
}

async function readRoot(job: Job, { rpc, config }: Scene): Promise<Hex | undefined> {
  const answer = await readCall(rpc, { to: config.registryAddress, data: rootOfCall(job.chamberId) });
  return ZERO.test(answer) ? undefined : rootOfResult(answer);
}

function callForHelp(job: Job, reason: string, { troubles, waits }: Scene): Step {
  troubles.raise(job.name, reason);
  waits.elapsed(pauseKey(job));
  return 'waiting';
}

function pauseKey({ name }: Job): string {
  return `pause ${name}`;
}
