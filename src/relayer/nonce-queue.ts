// The account's nonces: the next free nonce, and the number of transactions that wait for a block. Nodes keep only a limited number of
// pending transactions per account, and only those that the account can pay for.
import { setImmediate } from 'node:timers/promises';
import type { Hex } from 'viem';
import type { RelayTransaction } from '../vocabulary/service-payloads.ts';
import { costOf, decodeTransaction, type UnsignedTransaction } from './transactions.ts';

/** The limit of common nodes. */
const UNMINED_MAX = 64;

/** A nonce that was chosen since the log was last read. */
interface Taken {
  readonly cost: bigint;
  /** `failed`: it is unknown whether the transaction is in the log; the next read of the log decides. */
  state: 'inProgress' | 'logged' | 'failed';
}

export class NonceQueue {
  /** The account's first nonce that no block has used. */
  #onChain = 0;
  /** For each logged nonce, the maximum cost of its transaction, or 0 if the transaction is in a block. */
  #logged: ReadonlyMap<number, bigint> = new Map();
  readonly #taken = new Map<number, Taken>();
  #costs = new Map<Hex, bigint>();
  #last: Promise<unknown> = Promise.resolve();

  /** Must be read before the log, and passed to `update` afterwards. */
  get ended(): readonly number[] {
    return [...this.#taken].flatMap(([nonce, { state }]) => (state === 'inProgress' ? [] : [nonce]));
  }

  /** `own` has the account's logged transactions, oldest first. */
  async update(onChain: number, own: readonly RelayTransaction[], ended: readonly number[]): Promise<void> {
    const unmined = own.filter(({ nonce }) => nonce >= onChain);
    const costs = new Map<Hex, bigint>();
    for (const transaction of unmined) costs.set(transaction.txHash, await this.#costOf(transaction));
    for (const nonce of ended) this.#taken.delete(nonce);
    this.#costs = costs;
    this.#logged = new Map(own.map(({ nonce, txHash }) => [nonce, costs.get(txHash) ?? 0n]));
    this.#onChain = onChain;
  }

  async #costOf(transaction: RelayTransaction): Promise<bigint> {
    const known = this.#costs.get(transaction.txHash);
    if (known !== undefined) return known;
    // After a start there may be many long transactions, so this yields to other work of the process.
    await setImmediate();
    return costOf(decodeTransaction(transaction));
  }

  /** The lowest nonce used neither by a block nor by the log. */
  get lowestFree(): number {
    let free = this.#onChain;
    while (this.#logged.has(free) || this.#taken.has(free)) free++;
    return free;
  }

  get isFull(): boolean {
    return this.unmined >= UNMINED_MAX;
  }

  get unmined(): number {
    return this.#waiting().length;
  }

  /** The maximum cost of all pending transactions, in wei. */
  get reserved(): bigint {
    return this.#waiting().reduce((sum, cost) => sum + cost, 0n);
  }

  #waiting(): readonly bigint[] {
    const taken = [...this.#taken].map(([nonce, { cost }]) => [nonce, cost] as const);
    const waiting = new Map([...this.#logged, ...taken].filter(([nonce]) => nonce >= this.#onChain));
    return [...waiting.values()];
  }

  /**
   * Logs transactions one at a time. After a failure it logs nothing until the log has been read again. So if a nonce is logged, no lower
   * nonce is missing in the log. Calls `choose` when it is the transaction's turn, and logs nothing if that returns undefined. `work`
   * logs the transaction and resolves to its hash.
   */
  async log(choose: () => UnsignedTransaction | undefined, work: (unsigned: UnsignedTransaction) => Promise<Hex>) {
    const turn = this.#last.then(async () => {
      const unsigned = this.#hasFailed ? undefined : choose();
      if (unsigned === undefined) return;
      const taken: Taken = { cost: costOf(unsigned), state: 'inProgress' };
      this.#taken.set(unsigned.nonce, taken);
      try {
        this.#costs.set(await work(unsigned), taken.cost);
        taken.state = 'logged';
      } catch (error) {
        taken.state = 'failed';
        throw error;
      }
    });
    this.#last = turn.catch(() => {});
    await turn;
  }

  get #hasFailed(): boolean {
    return [...this.#taken.values()].some(({ state }) => state === 'failed');
  }
}
