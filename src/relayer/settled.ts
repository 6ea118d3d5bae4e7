// Which chambers hold the account's transactions, by nonce: they are watched after they are settled, because a
// reorganisation, or a development chain that lost its last second, may take them off the chain again.
import type { Address } from 'viem';
import type { ChamberState } from '../../projections/chamber.ts';
import { transactionsOf } from './jobs.ts';
import type { RelayerForum } from './port.ts';
import { signedBy } from './signer.ts';

const CHAMBERS_FIRST = 8;
const CHAMBERS_FACTOR = 4;
const WATCHED_MAX = 1_000;

export class WatchedNonces {
  readonly #account: Address;
  readonly #chamberIds = new Map<number, number>();

  constructor(account: Address) {
    this.#account = account;
  }

  async add({ chamberId, settlement }: ChamberState): Promise<void> {
    for (const { nonce } of await signedBy(this.#account, transactionsOf(settlement))) {
      this.#chamberIds.set(nonce, chamberId);
    }
    while (this.#chamberIds.size > WATCHED_MAX) this.#chamberIds.delete(Math.min(...this.#chamberIds.keys()));
  }

  /** Chambers with transactions that the chain has not, or not any more, in the order in which it takes them. */
  chambersFrom(nonce: number): readonly number[] {
    const missing = [...this.#chamberIds].filter(([one]) => one >= nonce).sort(([a], [b]) => a - b);
    return [...new Set(missing.map(([, chamberId]) => chamberId))];
  }
}

export interface Settled {
  readonly watched: WatchedNonces;
  /** The chain of the transactions; undefined when there are none. */
  readonly chainId: number | undefined;
}

/** Reads back through settled chambers until the chain has what they sent: usually the newest few. */
export async function readSettled(forum: RelayerForum, account: Address, nonce: number): Promise<Settled> {
  const watched = new WatchedNonces(account);
  let chainId: number | undefined;
  for (let limit = CHAMBERS_FIRST, read = 0; ; limit *= CHAMBERS_FACTOR) {
    const chamberIds = await forum.settledChambers(limit);
    let isOnChain = false;
    for (const chamberId of chamberIds.slice(read)) {
      const chamber = await forum.chamber(chamberId);
      if (chamber === undefined) continue;
      await watched.add(chamber.state);
      const transactions = transactionsOf(chamber.state.settlement);
      const own = await signedBy(account, transactions);
      chainId ??= transactions[0]?.chainId;
      isOnChain ||= own.length < transactions.length || own.some((transaction) => transaction.nonce < nonce);
    }
    if (isOnChain || chamberIds.length < limit) return { watched, chainId };
    read = chamberIds.length;
  }
}
