// For how many transactions the relayer's account has funds, so that an operator hears of it before it is empty. Read once a minute by the
// node that relays, in a round without work.
import { formatEther } from 'viem';
import type { Millis } from '../vocabulary/values.ts';
import type { FeeOffer } from './fees.ts';
import type { UnsignedTransaction } from './transactions.ts';

const INTERVAL_MILLIS = 60_000;
/** A deployment takes about as much, until one was signed. */
const GAS_EXPECTED = 1_500_000n;

export interface FundsFigures {
  /** NaN until it was read. */
  readonly balanceEther: number;
  /** Of the costliest kind since the start, at the fees of now; NaN until it is known. */
  readonly transactionsLeft: number;
}

const UNKNOWN: FundsFigures = { balanceEther: Number.NaN, transactionsLeft: Number.NaN };

interface Readings {
  readonly balance: () => Promise<bigint>;
  readonly fees: () => Promise<FeeOffer>;
}

export class Funds {
  readonly #clock: () => Millis;
  #figures = UNKNOWN;
  #gas = GAS_EXPECTED;
  #value = 0n;
  #isSigned = false;
  #lookAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(clock: () => Millis) {
    this.#clock = clock;
  }

  get figures(): FundsFigures {
    return this.#figures;
  }

  /** A transaction is about to be signed. */
  noteCall({ gas = 0n, value = 0n }: Pick<UnsignedTransaction, 'gas' | 'value'>): void {
    if (!this.#isSigned || gas > this.#gas) this.#gas = gas;
    if (value > this.#value) this.#value = value;
    this.#isSigned = true;
  }

  /** Another node may relay from now on, and spend. */
  forget(): void {
    this.#figures = UNKNOWN;
    this.#lookAt = Number.NEGATIVE_INFINITY;
  }

  /** Rejects as the readings do. */
  async look({ balance, fees }: Readings): Promise<void> {
    if (this.#clock() < this.#lookAt) return;
    this.#lookAt = this.#clock() + INTERVAL_MILLIS;
    const [wei, offer] = await Promise.all([balance(), fees()]);
    const balanceEther = Number(formatEther(wei));
    // Above the limit nothing is sent, and nothing spent.
    if ('excess' in offer) this.#figures = { ...this.#figures, balanceEther };
    else {
      const cost = this.#gas * offer.fees.maxFeePerGas + this.#value;
      this.#figures = { balanceEther, transactionsLeft: Number(wei / cost) };
    }
  }
}
