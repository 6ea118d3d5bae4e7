// The account's recent nonces. A reorganization may still undo their transactions.
import type { RelayTransaction } from '../vocabulary/service-payloads.ts';
import type { ClosedChamber, RelayerContext } from './context.ts';
import { readClosed, transactionsOf } from './jobs.ts';

export interface WatchedNonces {
  /** The chain of the log's newest transaction; undefined if the log has none. */
  readonly chainId: number | undefined;
  readonly add: (chamber: ClosedChamber) => Promise<readonly RelayTransaction[]>;
  /** The chambers of this nonce and higher ones, lowest nonce first. */
  readonly chambersFrom: (nonce: number) => readonly number[];
}

const WATCHED_MAX = 1_000;
const CHAMBERS_ON_CHAIN = 8;

/** Reads settled chambers, newest first, until CHAMBERS_ON_CHAIN of them have transactions on the chain. */
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
  // A round reads fewer chambers, and chambers with alerts may also have transactions.
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
