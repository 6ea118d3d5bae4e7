// The highest nonce that any node ever reported of an account. Behind one URL may be nodes that lag: what one of them does not know
// proves nothing about a nonce that another has seen used.
import type { Address } from 'viem';

export class HighestNonces {
  readonly #highest = new Map<Address, number>();

  /** Returns the highest so far. */
  see(account: Address, nonce: number): number {
    const highest = Math.max(nonce, this.#highest.get(account) ?? 0);
    this.#highest.set(account, highest);
    return highest;
  }
}
