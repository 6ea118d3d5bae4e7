// What a line says of the chain at a block that it names, whether the chain that is asked can tell, and whether that block was the newest when
// the line was written, which is the one that a service asks.
import { type BlockReference, type Hex, type Millis, SIGNATURE_AGES } from '../../vocabulary/values.ts';
import type { AuditPolicy } from '../policy.ts';
import type { Outcome } from '../report/findings.ts';
import type { AuditedBlock, AuditedChain, ChainRead } from './chain-reader.ts';

export interface RecordedBlock extends BlockReference {
  readonly chainId: number;
  /** The time of the line for which the service asked. */
  readonly askedAt: Millis;
}

/** What a wallet that is a contract has accepted as its signature, by a line of an account. */
export interface ContractProof extends RecordedBlock {
  readonly eventId: number;
  readonly wallet: string;
  readonly hash: Hex;
  readonly signature: Hex;
}

/** The chain that is asked, and what the caller knows of the service. */
export interface AskedChain {
  readonly chain: AuditedChain;
  readonly policy: AuditPolicy;
}

/** What is wrong with what a line says of the result of a call after the block, or with the block. */
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
  if (served !== chainId) return { doubt: `the RPC serves chain ${served}, and the line is of ${chainId}` };
  if (block?.hash !== blockHash)
    return { doubt: `block ${blockNumber} is ${block?.hash ?? 'not known'} there, and not ${blockHash}` };
  const result = await chain.read(call, BigInt(blockNumber));
  const ofResult =
    result === 'unknown' ? { doubt: `the RPC does not have the state of block ${blockNumber}` } : await judge(result);
  const ofTime = problemOfTime(recorded, block, next, policy);
  return typeof ofResult === 'string' ? ofResult : typeof ofTime === 'string' ? ofTime : (ofResult ?? ofTime);
}

/**
 * A block stays the newest until there is another one, however long that takes on a chain without traffic; so its own age says nothing. Clocks and
 * RPCs may lag as much as signatures may.
 */
function problemOfTime(
  { blockNumber, askedAt }: RecordedBlock,
  block: AuditedBlock,
  next: AuditedBlock | undefined,
  { maxAgeSeconds, maxSkewSeconds }: AuditPolicy,
): Outcome {
  const { defaults, caps } = SIGNATURE_AGES;
  const late = next === undefined ? 0 : (askedAt - next.at) / 1000;
  const ahead = (block.at - askedAt) / 1000;
  const ofLate = beyond(late, [defaults.maxAgeSeconds, maxAgeSeconds, caps.maxAgeSeconds]);
  const ofAhead = beyond(ahead, [defaults.maxSkewSeconds, maxSkewSeconds, caps.maxSkewSeconds]);
  const isLate = ofLate !== 'within';
  if (!isLate && ofAhead === 'within') return undefined;
  const problem = isLate
    ? `the chain had a newer block than ${blockNumber} for ${late} s when the line was written, and a service asks the newest`
    : `block ${blockNumber} is ${ahead} s younger than the line`;
  if (ofLate === 'broken' || ofAhead === 'broken') return problem;
  return { doubt: `${problem}: say with ${isLate ? '--max-age' : '--max-skew'} how many seconds are accepted` };
}

/** A limit of the caller's decides, but none below the default: it is that of signatures, which an agent makes just before. */
function beyond(
  seconds: number,
  [usual, given, most]: readonly [usual: number, given: number | undefined, most: number],
): 'within' | 'open' | 'broken' {
  if (seconds <= Math.max(usual, given ?? usual)) return 'within';
  return seconds > (given ?? most) ? 'broken' : 'open';
}
