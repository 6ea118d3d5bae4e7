// The relayer's spending since the start, for metrics and alerts.
import { formatEther } from 'viem';
import type { Receipt } from './chain-client.ts';

export interface SpendingFigures {
  /** Signed transactions, including replacements with a higher fee. */
  readonly transactions: number;
  readonly reverts: number;
  readonly ether: number;
  /** The largest number of attempts at one open job. */
  readonly attemptsMax: number;
  /** The cost of the most expensive open job. */
  readonly jobEtherMax: number;
}

interface JobSpending {
  attempts: number;
  wei: bigint;
  readonly charged: Set<string>;
}

export class Spending {
  readonly #open = new Map<string, JobSpending>();
  #transactions = 0;
  #reverts = 0;
  #wei = 0n;

  countSigned(): void {
    this.#transactions++;
  }

  setAttempts(name: string, attempts: number): void {
    if (attempts > 0) this.#of(name).attempts = attempts;
  }

  /** Adds the cost of a confirmed transaction, once. */
  charge(name: string, { transactionHash, status, gasUsed, effectiveGasPrice, l1Fee }: Receipt): void {
    const job = this.#of(name);
    if (job.charged.has(transactionHash)) return;
    job.charged.add(transactionHash);
    const wei = gasUsed * effectiveGasPrice + (l1Fee ?? 0n);
    job.wei += wei;
    this.#wei += wei;
    if (status !== 1) this.#reverts++;
  }

  /** The job's cost in ether. */
  costOf(name: string): string {
    return formatEther(this.#open.get(name)?.wei ?? 0n);
  }

  close(name: string): void {
    this.#open.delete(name);
  }

  figures(): SpendingFigures {
    const open = [...this.#open.values()];
    return {
      transactions: this.#transactions,
      reverts: this.#reverts,
      ether: Number(formatEther(this.#wei)),
      attemptsMax: Math.max(0, ...open.map(({ attempts }) => attempts)),
      jobEtherMax: Math.max(0, ...open.map(({ wei }) => Number(formatEther(wei)))),
    };
  }

  #of(name: string): JobSpending {
    const known = this.#open.get(name) ?? { attempts: 0, wei: 0n, charged: new Set() };
    this.#open.set(name, known);
    return known;
  }
}
