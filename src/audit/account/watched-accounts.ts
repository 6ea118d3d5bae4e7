// Remembers up to where each account was read while chambers were judged, so that the same lines can be looked for in the published log.
import type { Hex, Millis } from '../../vocabulary/values.ts';
import type { AccountLog, Accounts } from './accounts.ts';

export interface AccountHead {
  readonly eventId: number;
  readonly leaf: Hex;
  readonly at: Millis;
}

export class WatchedAccounts implements Accounts {
  readonly #accounts: Accounts;
  /** An account may be read again when it has grown. */
  readonly #heads = new Map<string, Map<number, AccountHead>>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  get copyProblem(): string | undefined {
    return this.#accounts.copyProblem;
  }

  get dids(): Iterable<string> {
    return this.#heads.keys();
  }

  /** The lines that accounts ended with, by their event ids; each pins all before it. */
  headsOf(did: string): ReadonlyMap<number, AccountHead> {
    return this.#heads.get(did) ?? new Map();
  }

  async of(did: string, accountEventId?: number): Promise<AccountLog | undefined> {
    const account = await this.#accounts.of(did, accountEventId);
    const head = account?.head;
    if (head === undefined) return account;
    const heads = this.#heads.get(did) ?? new Map<number, AccountHead>();
    this.#heads.set(did, heads.set(head.eventId, head));
    return account;
  }
}
