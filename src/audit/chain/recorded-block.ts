// Judges the call result that a line records for a block: whether the chain agrees, and whether the block was the newest when the
// line was written, because a service queries the newest block.
import { type BlockReference, type Hex, type Millis, SIGNATURE_AGES } from '../../vocabulary/values.ts';
import type { AuditPolicy } from '../policy.ts';
import type { Outcome } from '../report/findings.ts';
import type { AuditedBlock, AuditedChain, ChainRead } from './chain-reader.ts';

export interface RecordedBlock extends BlockReference {
  readonly chainId: number;
  /** The time of the line for which the service queried the chain. */
  readonly askedAt: Millis;
}

/** A signature that a contract wallet accepted, according to an account line. */
export interface ContractProof extends RecordedBlock {
  readonly eventId: number;
  readonly wallet: string;
  readonly hash: Hex;
  readonly signature: Hex;
}

export interface AskedChain {
  readonly chain: AuditedChain;
  readonly policy: AuditPolicy;
}

/** Repeats a recorded call; returns the problem with its result or its block. */
export async function judgeAt(
  recorded: RecordedBlock,
  call: ChainRead,
  { chain, policy }: AskedChain,
  judge: (result: Hex | 'reverted') => Outcome | Promise<Outcome>,
): Promise<Outcome> {
  const { chainId, blockNumber, blockHash } = recorded;
  const [served, block, next] = await Promise.all([
    chain.chainId(),
    chain.block(blockNumber),
    chain.block(blockNumber + 1),
  ]);
  if (served !== chainId) return { doubt: `the RPC serves chain ${served}, but the line names chain ${chainId}` };
  if (block?.hash !== blockHash)
    return { doubt: `block ${blockNumber} is ${block?.hash ?? 'unknown'} there, not ${blockHash}` };
  const result = await chain.read(call, BigInt(blockNumber));
  const resultProblem =
    result === 'unknown' ? { doubt: `the RPC does not have the state of block ${blockNumber}` } : await judge(result);
  const timeProblem = blockTimeProblem(recorded, block, next, policy);
  return typeof resultProblem === 'string'
    ? resultProblem
    : typeof timeProblem === 'string'
      ? timeProblem
      : (resultProblem ?? timeProblem);
}

/**
 * On an idle chain, a block stays the newest indefinitely, so only the next block's age counts. Clocks and RPCs may lag by up to the limits
 * for signatures.
 */
function blockTimeProblem(
  { blockNumber, askedAt }: RecordedBlock,
  block: AuditedBlock,
  next: AuditedBlock | undefined,
  { maxAgeSeconds, maxSkewSeconds }: AuditPolicy,
): Outcome {
  const { defaults, caps } = SIGNATURE_AGES;
  const lateSeconds = next === undefined ? 0 : (askedAt - next.at) / 1000;
  const aheadSeconds = (block.at - askedAt) / 1000;
  const lateVerdict = beyond(lateSeconds, [defaults.maxAgeSeconds, maxAgeSeconds, caps.maxAgeSeconds]);
  const aheadVerdict = beyond(aheadSeconds, [defaults.maxSkewSeconds, maxSkewSeconds, caps.maxSkewSeconds]);
  const isLate = lateVerdict !== 'within';
  if (!isLate && aheadVerdict === 'within') return undefined;
  const problem = isLate
    ? `the chain had already had a block newer than ${blockNumber} for ${lateSeconds} s when the line was written, but a service queries the newest block`
    : `block ${blockNumber} is ${aheadSeconds} s newer than the line`;
  if (lateVerdict === 'broken' || aheadVerdict === 'broken') return problem;
  return { doubt: `${problem}: ${isLate ? '--max-age' : '--max-skew'} sets the accepted number of seconds` };
}

/** A limit for signatures applies to blocks too, but not below its default: agents sign just before the service reads the block. */
function beyond(
  seconds: number,
  [usual, given, most]: readonly [usual: number, given: number | undefined, most: number],
): 'within' | 'open' | 'broken' {
  if (seconds <= Math.max(usual, given ?? usual)) return 'within';
  return seconds > (given ?? most) ? 'broken' : 'open';
}

/** The number of concurrent requests to the RPC. */
const CONCURRENT_MAX = 8;

/** Processes all items, a few at a time; rejects with the first error. */
export async function forEachConcurrently<Item>(
  items: Iterable<Item>,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = [...items];
  const workOn = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: CONCURRENT_MAX }, workOn));
}
