// How the step of a job ends: its outcome is recorded, or it is set aside with an alert.
import type { ServiceFact } from '../vocabulary/events.ts';
import type { Millis } from '../vocabulary/values.ts';
import { type Block, type Receipt, readBlock, readReceipt } from './chain-client.ts';
import type { RelayerContext, RoundContext } from './context.ts';
import type { Completion, Job } from './jobs.ts';

/**
 * `recorded`: the outcome is in the log. `sent`: a new transaction is on its way. `confirming`: nothing is to be done before more blocks
 * come. `deferred`: set aside, with an alert.
 */
export type Step = 'recorded' | 'sent' | 'waiting' | 'confirming' | 'deferred';

const DEFER_MILLIS: Millis = 5_000;

export async function record(job: Job, fact: ServiceFact, round: RoundContext): Promise<Step> {
  const { forum, lease, logger, alerts, stopwatches, failed, refusals, confirmedWith, formerAttempts, spending } =
    round;
  await forum.record(job.chamberId, fact, { root: job.root, lease });
  if (fact.type === 'idea.deploy_failed') failed.count++;
  logger.info({ job: job.name, type: fact.type, ether: spending.costOf(job.name) }, 'relay outcome recorded');
  alerts.clear(job.name);
  refusals.end(job.name);
  confirmedWith.delete(job.name);
  formerAttempts.delete(job.name);
  spending.close(job.name);
  stopwatches.stop(...job.submitted.map(({ txHash }) => txHash));
  return 'recorded';
}

/** Tries again later, each time with a longer pause; the other jobs go on. */
export function defer(job: Job, reason: string, { alerts, pauses }: RelayerContext): Step {
  alerts.raise(job.name, reason);
  pauses.defer(job.name, DEFER_MILLIS);
  return 'deferred';
}

/** Records a completion that was found on the chain when its block has its confirmations. */
export async function complete(job: Job, { txHash, fact }: Completion, round: RoundContext): Promise<Step> {
  const receipt = await readReceipt(round.rpc, txHash);
  const block = receipt === null ? undefined : await confirmedBlock(receipt, round);
  return block === undefined ? 'waiting' : record(job, fact(block), round);
}

/** The job's event counts in any transaction, from any account. */
export function findCompletion(job: Job, { logs }: RoundContext): Promise<Completion | undefined> {
  return logs.find({ address: job.contract, topics: job.topics() }, job.find);
}

/** The block once it has its confirmations, if it is still the chain's. */
export async function confirmedBlock(
  receipt: Receipt,
  { rpc, head, config }: RoundContext,
): Promise<Block | undefined> {
  if (head.number - receipt.blockNumber + 1 < config.confirmations) return undefined;
  const block = await readBlock(rpc, receipt.blockNumber);
  return block?.hash === receipt.blockHash ? block : undefined;
}
