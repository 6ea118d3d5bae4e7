// Looks for a job's event in all blocks, also through providers that answer for few blocks at a time.
import { readLogs } from './chain.ts';
import type { Completion, Job } from './jobs.ts';
import { type Rpc, RpcError } from './rpc.ts';

/** What every provider answers for. */
const WINDOW_BLOCKS = 2_000;
/** Weeks of blocks: a job is found soon after its chamber has closed. */
const WINDOWS_MAX = 200;

export async function findInLogs(
  rpc: Rpc,
  job: Pick<Job, 'to' | 'topics' | 'find'>,
  toBlock: number,
): Promise<Completion | undefined> {
  try {
    return job.find(await readLogs(rpc, job.to, job.topics, { fromBlock: 0, toBlock }));
  } catch (error) {
    if (!(error instanceof RpcError) || error.kind !== 'refused' || toBlock < WINDOW_BLOCKS) throw error;
    return findInWindows(rpc, job, toBlock);
  }
}

async function findInWindows(
  rpc: Rpc,
  job: Pick<Job, 'to' | 'topics' | 'find'>,
  head: number,
): Promise<Completion | undefined> {
  for (let index = 0; index < WINDOWS_MAX; index++) {
    const toBlock = head - index * WINDOW_BLOCKS;
    if (toBlock < 0) return undefined;
    const fromBlock = Math.max(0, toBlock - WINDOW_BLOCKS + 1);
    const found = job.find(await readLogs(rpc, job.to, job.topics, { fromBlock, toBlock }));
    if (found !== undefined) return found;
  }
  return undefined;
}
