// What a step of the relayer stands on: its means, and the chain as it was when the round began.
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Head } from './chain.ts';
import type { Logger, RelayerConfig, RelayerForum } from './port.ts';
import type { Rpc } from './rpc.ts';
import type { Troubles } from './trouble.ts';
import type { Waits } from './waits.ts';

export interface Means {
  readonly rpc: Rpc;
  readonly account: PrivateKeyAccount;
  readonly config: RelayerConfig;
  readonly forum: RelayerForum;
  readonly logger: Logger;
  readonly troubles: Troubles;
  readonly waits: Waits;
}

export interface Scene extends Means {
  readonly chainId: number;
  readonly head: Head;
  /** The account's first nonce that no block has used. */
  readonly nonce: number;
  /** The lowest nonce that neither a block nor a transaction of the log uses. Taken once, it is not given again. */
  readonly takeNonce: () => number;
}

/** `recorded`: the outcome is in the log. `sent`: a transaction is on its way. */
export type Step = 'recorded' | 'sent' | 'waiting';

/** Never a counter that only rises: the chain says where free nonces begin, the log which of them are in use. */
export function nonceSource(nonce: number, used: Iterable<number>): () => number {
  const taken = new Set(used);
  return () => {
    let free = nonce;
    while (taken.has(free)) free++;
    taken.add(free);
    return free;
  };
}
