// Transactions whose outcome the log holds: they are watched, because a reorganisation, or a development chain that lost
// its last second, may take them off the chain again.
import type { ChamberState } from '../../projections/chamber.ts';
import type { Deployment } from '../../projections/settlement.ts';
import type { RelayTransaction } from '../vocabulary/events.ts';
import type { Hex } from '../vocabulary/values.ts';
import type { RelayerForum } from './port.ts';

const CHAMBERS_FIRST = 8;
const CHAMBERS_FACTOR = 4;
const WATCHED_MAX = 1_000;

/** By nonce; of several variants the one that the outcome names. */
export class SettledTransactions {
  readonly #byNonce = new Map<number, RelayTransaction>();

  add(state: ChamberState): void {
    for (const transaction of settledIn(state)) {
      this.#byNonce.delete(transaction.nonce);
      this.#byNonce.set(transaction.nonce, transaction);
    }
    const [oldest] = this.#byNonce.keys();
    if (this.#byNonce.size > WATCHED_MAX && oldest !== undefined) this.#byNonce.delete(oldest);
  }

  /** Those that the chain has not, or not any more, in the order in which it takes them. */
  missing(nonce: number): readonly RelayTransaction[] {
    return [...this.#byNonce.values()].filter((one) => one.nonce >= nonce).sort((a, b) => a.nonce - b.nonce);
  }

  get chainId(): number | undefined {
    const [first] = this.#byNonce.values();
    return first?.chainId;
  }
}

/** Reads back through settled chambers until the chain has what they sent: usually the newest few. */
export async function readSettled(forum: RelayerForum, nonce: number): Promise<SettledTransactions> {
  const settled = new SettledTransactions();
  for (let limit = CHAMBERS_FIRST, read = 0; ; limit *= CHAMBERS_FACTOR) {
    const chamberIds = await forum.settledChambers(limit);
    let isOnChain = false;
    for (const chamberId of chamberIds.slice(read)) {
      const chamber = await forum.chamber(chamberId);
      if (chamber === undefined) continue;
      settled.add(chamber.state);
      isOnChain ||= settledIn(chamber.state).some((transaction) => transaction.nonce < nonce);
    }
    if (isOnChain || chamberIds.length < limit) return settled;
    read = chamberIds.length;
  }
}

function settledIn({ settlement }: ChamberState): readonly RelayTransaction[] {
  const { commitSubmitted, committed, deployments } = settlement;
  if (committed === null) return [];
  const deployed = [...deployments.values()].flatMap(settledDeployment);
  return [...minedLast(commitSubmitted, committed.txHash), ...deployed];
}

function settledDeployment({ submitted, outcome }: Deployment): readonly RelayTransaction[] {
  return outcome === null ? [] : minedLast(submitted, outcome.txHash);
}

function minedLast(submitted: readonly RelayTransaction[], mined: Hex | null): readonly RelayTransaction[] {
  return submitted.toSorted((a, b) => Number(a.txHash === mined) - Number(b.txHash === mined));
}
