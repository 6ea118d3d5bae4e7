// Brings one job a step further: a function of the log, the chain and the clock. Whatever was interrupted, the next step is
// found anew from these, so recovery is the normal path.
import { unreachable } from '../vocabulary/unreachable.ts';
import { estimateGas, readBalance } from './chain.ts';
import { networkFees } from './fees.ts';
import { isLost, type Job } from './jobs.ts';
import { complete, conclude, explainRevert, findDone, isPaused } from './outcome.ts';
import type { Scene, Step } from './scene.ts';
import { gapKey, lackFunds, logAndSend, push, SETTLING_MILLIS, sendAgain } from './sending.ts';
import { sight } from './sighting.ts';
import { signTransaction } from './signer.ts';

const LOST_REPEAT_MILLIS = 60_000;

export async function advance(job: Job, scene: Scene): Promise<Step> {
  if (job.outcome !== null) return keepOnChain(job, scene);
  const sighting = await sight(scene.rpc, job.submitted, scene.nonce);
  if (sighting.kind !== 'overtaken') scene.waits.end(overtakenKey(job));
  switch (sighting.kind) {
    case 'unsigned':
      return submit(job, scene);
    case 'pending':
      return push(job, scene);
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

/** What was done is watched: a reorganisation, or a development chain that lost its last second, may take it away. */
async function keepOnChain(job: Job, scene: Scene): Promise<Step> {
  if (isLost(job, scene.nonce)) {
    tellLost(job, scene);
    return push(job, scene);
  }
  const mined = job.submitted.filter(({ nonce }) => nonce < scene.nonce);
  scene.waits.end(lostKey(job), gapKey(job), ...mined.map(({ txHash }) => txHash));
  return sendAgain(job, scene);
}

function tellLost(job: Job, { waits, logger }: Scene): void {
  const key = lostKey(job);
  if (waits.isOn(key) && waits.elapsed(key) < LOST_REPEAT_MILLIS) return;
  waits.end(key);
  waits.elapsed(key);
  logger.warn({ job: job.name }, 'the chain has lost what was settled; it is sent again');
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
  const nonce = scene.nonces.take();
  return logAndSend(job, await signTransaction(account, { chainId, nonce, to, data, gas, fees }), scene);
}

/** Somebody else used the nonce, as far as the node tells: the job is signed anew unless the chain already holds it. */
async function replace(job: Job, scene: Scene): Promise<Step> {
  if (scene.waits.elapsed(overtakenKey(job)) < SETTLING_MILLIS) return 'waiting';
  const done = await findDone(job, scene);
  return done === undefined ? submit(job, scene) : complete(job, done, scene);
}

function overtakenKey({ name }: Job): string {
  return `overtaken ${name}`;
}

function lostKey({ name }: Job): string {
  return `lost ${name}`;
}
