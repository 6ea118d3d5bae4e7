// What a line says of the chain at a block that it names, and whether the chain that is asked can tell.
import type { BlockReference, Hex } from '../../vocabulary/values.ts';
import type { AuditedChain } from './chain-reader.ts';

/** Why a claim is broken, if it is, or why the chain that is asked can't tell. */
export type Outcome = { readonly problem: string | undefined } | { readonly doubt: string };

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

/** Why the RPC can't be asked about this block; undefined where it can, as far as it says. */
export async function blockDoubt(
  chain: AuditedChain,
  { chainId, blockNumber, blockHash }: RecordedBlock,
): Promise<string | undefined> {
  const [served, hash] = await Promise.all([chain.chainId(), chain.blockHash(blockNumber)]);
  if (served !== chainId) return `the RPC serves chain ${served}, and the line is of ${chainId}`;
  return hash === blockHash ? undefined : `block ${blockNumber} is ${hash ?? 'not known'} there, and not ${blockHash}`;
}

export function noState({ blockNumber }: RecordedBlock): string {
  return `the RPC does not have the state of block ${blockNumber}`;
}
