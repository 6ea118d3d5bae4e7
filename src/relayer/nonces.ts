// The account's nonces whose transactions may still be taken off the chain.
import type { RelayTransaction } from '../vocabulary/service-payloads.ts';
import type { ClosedChamber, RelayerContext } from './context.ts';
import { readClosed, transactionsOf } from './jobs.ts';

/** The newest nonces of the account with their chambers: their transactions may still be taken off the chain. */
export interface WatchedNonces {
  /** The chain of the transactions; undefined when there were none. */
  readonly chainId: number | undefined;
  readonly add: (chamber: ClosedChamber) => Promise<readonly RelayTransaction[]>;
  /** Chambers with transactions that the chain does not have, or not any more, in the order in which it takes them. */
  readonly chambersFrom: (nonce: number) => readonly number[];
}

const WATCHED_MAX = 1_000;
const CHAMBERS_ON_CHAIN = 8;

/** Reads back through settled chambers until the chain has what a few of them sent: usually the newest. */
export async function readWatchedNonces(
  { forum, account, signers }: RelayerContext,
  nonce: number,
): Promise<WatchedNonces> {
  const chamberIdByNonce = new Map<number, number>();
  const add = async (chamber: ClosedChamber) => {
    const own = await signers.ownOf(account.address, transactionsOf(chamber));
    for (const transaction of own) chamberIdByNonce.set(transaction.nonce, chamber.state.chamberId);
    while (chamberIdByNonce.size > WATCHED_MAX) chamberIdByNonce.delete(Math.min(...chamberIdByNonce.keys()));
    return own;
  };
  const chambersFrom = (first: number) => {
    const missing = [...chamberIdByNonce].filter(([one]) => one >= first).sort(([a], [b]) => a - b);
    return [...new Set(missing.map(([, chamberId]) => chamberId))];
  };
  // More than a round takes: some were open with an alert, and have transactions.
  for (const chamberId of await forum.unsettledChambers(WATCHED_MAX)) {
    for (const chamber of await readClosed([chamberId], forum)) await add(chamber);
  }
  let chainId: number | undefined;
  let onChain = 0;
  for (const chamberId of await forum.settledChambers(WATCHED_MAX)) {
    const chamber = await forum.chamber(chamberId);
    if (chamber === undefined) continue;
    const own = await add(chamber);
    const transactions = transactionsOf(chamber);
    chainId ??= transactions[0]?.chainId;
    const isOnChain = own.length < transactions.length || own.some((transaction) => transaction.nonce < nonce);
    if (isOnChain && ++onChain === CHAMBERS_ON_CHAIN) break;
  }
  return { chainId, add, chambersFrom };
}
