// What the relayer has spent since the start, for the metrics and the alerts of a job.
import { formatEther } from 'viem';
import type { Receipt } from './chain-client.ts';

export interface SpendingFigures {
  /** Transactions that were signed, raised fees included. */
  readonly transactions: number;
  /** Transactions that reverted in a block. */
  readonly reverts: number;
  readonly ether: number;
  /** Of the open job with the most: at how many nonces it was signed, and what these cost in ether. */
  readonly attemptsMax: number;
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

  /** An open job has been signed at so many nonces. */
  setAttempts(name: string, attempts: number): void {
    if (attempts > 0) this.#of(name).attempts = attempts;
  }

  /** Adds a confirmed transaction, once. */
  charge(name: string, { transactionHash, status, gasUsed, effectiveGasPrice, l1Fee }: Receipt): void {
    const job = this.#of(name);
    if (job.charged.has(transactionHash)) return;
    job.charged.add(transactionHash);
    const wei = gasUsed * effectiveGasPrice + (l1Fee ?? 0n);
    job.wei += wei;
    this.#wei += wei;
    if (status !== 1) this.#reverts++;
  }

  /** What the job has cost, in ether, for people. */
  costOf(name: string): string {
    return formatEther(this.#open.get(name)?.wei ?? 0n);
  }

  /** The job is done. */
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
