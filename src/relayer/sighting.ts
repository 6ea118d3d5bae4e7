// What the chain knows of a job's transactions. A missing receipt means unknown, never failed.
import type { RelayTransaction } from '../vocabulary/events.ts';
import { isInBlock, type Receipt, readReceipt } from './chain.ts';
import type { Rpc } from './rpc.ts';

export type Sighting =
  /** Nothing has been signed yet. */
  | { readonly kind: 'unsigned' }
  /** One of them is in a block: a successful one, or one that reverted and was not signed anew since. */
  | { readonly kind: 'mined'; readonly receipt: Receipt }
  /** The newest can still be mined. */
  | { readonly kind: 'pending' }
  /** One is in a block, but its receipt is late. */
  | { readonly kind: 'late' }
  /** Their nonces are used up and no block has any of them: another transaction took the nonce, as far as the node tells. */
  | { readonly kind: 'overtaken' };

/** `nonce` is the account's first free nonce on chain, read before this. */
export async function sight(rpc: Rpc, submitted: readonly RelayTransaction[], nonce: number): Promise<Sighting> {
  const newest = submitted.at(-1);
  if (newest === undefined) return { kind: 'unsigned' };
  const receipts = await Promise.all(submitted.map(({ txHash }) => readReceipt(rpc, txHash)));
  const receipt =
    receipts.find((candidate) => candidate?.isSuccess) ??
    receipts.find((candidate, index) => candidate !== null && submitted[index]?.nonce === newest.nonce);
  if (receipt) return { kind: 'mined', receipt };
  if (newest.nonce >= nonce) return { kind: 'pending' };
  const inBlocks = await Promise.all(submitted.map(({ txHash }) => isInBlock(rpc, txHash)));
  const isLate = inBlocks.some((isIn, index) => isIn && submitted[index]?.nonce === newest.nonce);
  return { kind: isLate ? 'late' : 'overtaken' };
}
