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
  /** Nonces that neither a block nor a transaction of the log uses. */
  readonly nonces: FreeNonces;
}

/** `recorded`: the outcome is in the log. `sent`: a transaction is on its way. */
export type Step = 'recorded' | 'sent' | 'waiting';

/** Never a counter that only rises: the chain says where free nonces begin, the log which of them are in use. */
export class FreeNonces {
  readonly #used: Set<number>;
  #lowest: number;

  constructor(nonce: number, used: Iterable<number>) {
    this.#lowest = nonce;
    this.#used = new Set(used);
  }

  get lowest(): number {
    while (this.#used.has(this.#lowest)) this.#lowest++;
    return this.#lowest;
  }

  /** The lowest, which is not given again. */
  take(): number {
    const { lowest } = this;
    this.#used.add(lowest);
    return lowest;
  }
}
