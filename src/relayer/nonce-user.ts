// Which transaction used a nonce, by the chain itself. A nonce that something else than the relayer used is no sign of a deployment, and the
// operator has nothing to confirm: the count of the account's transactions after each block says in which block the nonce was used.
import type { Address, Hex } from 'viem';
import { readNonceAfter, readTransactionsOf } from './chain-client.ts';
import { isRejection, type Rpc } from './rpc.ts';

interface NonceUse {
  readonly account: Address;
  readonly nonce: number;
  /** The newest block that counts. */
  readonly newest: number;
}

/**
 * Its hash; undefined if it was not used by then, or the node keeps no state of that time. Full nodes keep that of some hundred blocks, so the search
 * goes back from the newest one in growing steps.
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
