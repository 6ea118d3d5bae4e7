// Ends a job's step: records the outcome, or pauses the job with an alert.
import type { ServiceFact } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';
import { type Block, type Receipt, readBlock, readReceipt } from './chain-client.ts';
import type { RelayerContext, RoundContext } from './context.ts';
import type { Completion, Job } from './jobs.ts';

/** `confirming`: nothing to do before more blocks are mined. `deferred`: the job is paused. */
export type Step = 'recorded' | 'sent' | 'waiting' | 'confirming' | 'deferred';

const DEFER_MILLIS: Millis = 5_000;

export async function record(job: Job, fact: ServiceFact, round: RoundContext): Promise<Step> {
  const { name, chamberId, root } = job;
  await round.forum.record(chamberId, fact, { root, lease: round.lease });
  if (fact.type === 'idea.deploy_failed') round.failed.count++;
  round.logger.info({ job: name, type: fact.type, ether: round.spending.costOf(name) }, 'relay outcome recorded');
  round.alerts.clear(name);
  round.simulatedReverts.end(name);
  round.confirmedWith.delete(name);
  round.formerAttempts.delete(name);
  round.spending.close(name);
  round.stopwatches.stop(...job.submitted.map(({ txHash }) => txHash));
  return 'recorded';
}

/** Raises an alert and pauses the job, for longer each time. */
export function defer(job: Job, reason: string, { alerts, pauses }: RelayerContext): Step {
  alerts.raise(job.name, reason);
  pauses.defer(job.name, DEFER_MILLIS);
  return 'deferred';
}

/** Records a completion found on the chain, once its block has enough confirmations. */
export async function complete(job: Job, { txHash, fact }: Completion, round: RoundContext): Promise<Step> {
  const receipt = await readReceipt(round.rpc, txHash);
  const block = receipt === null ? undefined : await confirmedBlock(receipt, round);
  return block === undefined ? 'waiting' : record(job, fact(block), round);
}

/** Finds the job's event in a transaction of any account. */
export function findCompletion(job: Job, { logs }: RoundContext): Promise<Completion | undefined> {
  return logs.find({ address: job.contract, topics: job.topics() }, job.find);
}

/** Resolves to the receipt's block if the block has enough confirmations and is still in the chain. */
export async function confirmedBlock(
  receipt: Receipt,
  { rpc, head, config }: RoundContext,
): Promise<Block | undefined> {
  if (head.number - receipt.blockNumber + 1 < config.confirmations) return undefined;
  const block = await readBlock(rpc, receipt.blockNumber);
  return block?.hash === receipt.blockHash ? block : undefined;
}
