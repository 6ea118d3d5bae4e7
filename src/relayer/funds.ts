// Estimates how many transactions the relayer's account can still pay for, so that an operator can refill it in time. The leading node
// reads the balance at most once a minute, in a round without work.
import { formatEther } from 'viem';
import type { Millis } from '../vocabulary/values.ts';
import type { FeeOffer } from './fees.ts';
import type { UnsignedTransaction } from './transactions.ts';

const INTERVAL_MILLIS = 60_000;
/** The approximate gas of a deployment, used until a transaction has been signed. */
const GAS_EXPECTED = 1_500_000n;

export interface FundsFigures {
  /** NaN if unknown. */
  readonly balanceEther: number;
  /**
   * The number of transactions that the balance can pay for at current fees if each costs as much gas as the most expensive one since
   * the start; NaN if unknown.
   */
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
  /** Undefined until a transaction has been signed. */
  #gas: bigint | undefined;
  #value = 0n;
  #nextAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(clock: () => Millis) {
    this.#clock = clock;
  }

  get figures(): FundsFigures {
    return this.#figures;
  }

  recordCall({ gas = 0n, value = 0n }: Pick<UnsignedTransaction, 'gas' | 'value'>): void {
    if (gas > (this.#gas ?? 0n)) this.#gas = gas;
    if (value > this.#value) this.#value = value;
  }

  /** Must be called when another node takes the lease, because the figures are no longer updated then. */
  reset(): void {
    this.#figures = UNKNOWN;
    this.#nextAt = Number.NEGATIVE_INFINITY;
  }

  /** Rejects if one of the readings rejects. */
  async update({ balance, fees }: Readings): Promise<void> {
    if (this.#clock() < this.#nextAt) return;
    this.#nextAt = this.#clock() + INTERVAL_MILLIS;
    const [wei, offer] = await Promise.all([balance(), fees()]);
    const balanceEther = Number(formatEther(wei));
    // Above the fee limit the relayer sends nothing.
    if ('excess' in offer) this.#figures = { ...this.#figures, balanceEther };
    else {
      const cost = (this.#gas ?? GAS_EXPECTED) * offer.fees.maxFeePerGas + this.#value;
      this.#figures = { balanceEther, transactionsLeft: Number(wei / cost) };
    }
  }
}
