// Finds out which transaction of an account used a nonce. If another program used a nonce of a job, the chain proves this without an
// operator: the account's transaction count after each block shows in which block the nonce was used.
import type { Address, Hex } from 'viem';
import { readNonceAfter, readTransactionsOf } from './chain-client.ts';
import { isRejection, type Rpc } from './rpc.ts';

/** The highest nonce of each account that any node has reported. Nodes behind one URL may lag, so a lower nonce proves nothing. */
export class HighestNonces {
  readonly #highest = new Map<Address, number>();

  observe(account: Address, nonce: number): number {
    const highest = Math.max(nonce, this.#highest.get(account) ?? 0);
    this.#highest.set(account, highest);
    return highest;
  }
}

interface NonceUse {
  readonly account: Address;
  readonly nonce: number;
  /** The newest block to consider. */
  readonly newest: number;
}

/**
 * Resolves to the hash of the transaction that used the nonce; undefined if the nonce was unused at `newest`, or if the node has pruned
 * the required state. Full nodes keep the state of some hundred blocks, so the search goes backwards from the newest block in growing
 * steps.
 */
export async function hashAtNonce(rpc: Rpc, use: NonceUse): Promise<Hex | undefined> {
  try {
    return await search(rpc, use);
  } catch (error) {
    if (isRejection(error)) return undefined;
    throw error;
  }
}

async function search(rpc: Rpc, { account, nonce, newest }: NonceUse): Promise<Hex | undefined> {
  const isUsedBy = async (number: number) => (await readNonceAfter(rpc, account, number)) > nonce;
  if (newest < 0 || !(await isUsedBy(newest))) return undefined;
  let [unused, used] = [newest - 1, newest];
  for (let step = 1; unused >= 0 && (await isUsedBy(unused)); step *= 2) [unused, used] = [unused - step, unused];
  unused = Math.max(unused, -1);
  while (used - unused > 1) {
    const middle = Math.floor((unused + used) / 2);
    if (await isUsedBy(middle)) used = middle;
    else unused = middle;
  }
  const transactions = await readTransactionsOf(rpc, account, used);
  return transactions.find((each) => each.nonce === nonce)?.hash;
}
