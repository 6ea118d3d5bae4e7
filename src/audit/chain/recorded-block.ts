// What a line says of the chain at a block that it names, and whether the chain that is asked can tell.
import type { BlockReference, Hex } from '../../vocabulary/values.ts';
import type { AuditedChain, ChainRead } from './chain-reader.ts';

export interface RecordedBlock extends BlockReference {
  readonly chainId: number;
}

/** What a wallet that is a contract has accepted as its signature, by a line of an account. */
export interface ContractProof extends RecordedBlock {
  readonly eventId: number;
  readonly wallet: string;
  readonly hash: Hex;
  readonly signature: Hex;
}

/** What a call results in after the block; `doubt` says why the chain that is asked can't tell. */
export async function readAt(
  { chainId, blockNumber, blockHash }: RecordedBlock,
  call: ChainRead,
  chain: AuditedChain,
): Promise<Hex | 'reverted' | { readonly doubt: string }> {
  const [served, hash] = await Promise.all([chain.chainId(), chain.blockHash(blockNumber)]);
  if (served !== chainId) return { doubt: `the RPC serves chain ${served}, and the line is of ${chainId}` };
  if (hash !== blockHash)
    return { doubt: `block ${blockNumber} is ${hash ?? 'not known'} there, and not ${blockHash}` };
  const result = await chain.read(call, BigInt(blockNumber));
  return result === 'unknown' ? { doubt: `the RPC does not have the state of block ${blockNumber}` } : result;
}
