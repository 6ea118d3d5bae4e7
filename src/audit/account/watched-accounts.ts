// Remembers how far each account was read while chambers were judged, so that the published log can be checked for the same lines.
import type { Hex, Millis } from '../../vocabulary/values.ts';
import { type AuditClock, isDue } from '../context.ts';
import type { AccountLog, Accounts } from './accounts.ts';

/** The last judged line of a stream; its hash pins all earlier lines. */
export interface StreamHead {
  readonly eventId: number;
  readonly leaf: Hex;
  readonly at: Millis;
}

export interface WatchedAccount {
  /** For each read, the last line and the last line that a checkpoint had to cover; distinct by event and leaf. */
  readonly heads: readonly StreamHead[];
  /** The distinct first events of all reads; an honest service serves only one. */
  readonly firstEventIds: readonly number[];
}

export class WatchedAccounts implements Accounts {
  readonly #accounts: Accounts;
  readonly #clock: AuditClock;
  readonly #isGiven: boolean;
  /** By DID. An account that has grown or was evicted is read again. */
  readonly #watched = new Map<string, WatchedAccount>();

  /** `isGiven`: the accounts come from a file, which may lack an account's first lines. */
  constructor(
    accounts: Accounts,
    { clock, isGiven = false }: { readonly clock: AuditClock; readonly isGiven?: boolean },
  ) {
    this.#accounts = accounts;
    this.#clock = clock;
    this.#isGiven = isGiven;
  }

  get copyProblem(): string | undefined {
    return this.#accounts.copyProblem;
  }

  get dids(): Iterable<string> {
    return this.#watched.keys();
  }

  of(did: string, accountEventId?: number): Promise<AccountLog | undefined> {
    return this.#accounts.of(did, accountEventId).then((account) => {
      if (account !== undefined) this.#watch(did, account);
      return account;
    });
  }

  /** Returns an empty record for an account that was never read. */
  watched(did: string): WatchedAccount {
    return this.#watched.get(did) ?? NOT_WATCHED;
  }

  /** Whether a chamber was judged against the account that the service served. */
  isJudged(did: string): boolean {
    return !this.#isGiven && this.#watched.has(did);
  }

  get unpublished(): number {
    if (this.#isGiven) return 0;
    const first = [...this.#watched.values()].filter(({ firstEventIds }) => firstEventIds.length > 0);
    return first.reduce((sum, { firstEventIds }) => sum + Math.min(...firstEventIds) - 1, 0);
  }

  /** Records the first event of the account that the service serves now. */
  noteServedFrom(did: string, eventId: number): void {
    const watched = this.#watched.get(did);
    if (this.#isGiven || watched === undefined || watched.firstEventIds.includes(eventId)) return;
    this.#watched.set(did, { ...watched, firstEventIds: [...watched.firstEventIds, eventId] });
  }

  contradictionOf(did: string): string | undefined {
    const { heads, firstEventIds } = this.watched(did);
    const twice = heads.find((one, i) => heads.findIndex(({ eventId }) => eventId === one.eventId) < i);
    if (twice !== undefined)
      return `the service has served two lines as event ${twice.eventId} of the account of ${did}`;
    if (firstEventIds.length < 2) return undefined;
    return `the service has served the account of ${did} from event ${firstEventIds[0]}, and at another time from event ${firstEventIds[1]}`;
  }

  #watch(did: string, { entries, firstEventId }: AccountLog): void {
    if (entries.length === 0) {
      if (!this.#watched.has(did)) this.#watched.set(did, NOT_WATCHED);
      return;
    }
    const { heads, firstEventIds } = this.watched(did);
    const due = entries.findLastIndex(({ at }) => isDue(at, this.#clock));
    const found = [due, entries.length - 1].flatMap((i) => {
      const entry = entries[i];
      return entry === undefined ? [] : [{ eventId: firstEventId + i, leaf: entry.leaf, at: entry.at }];
    });
    const isNew = (head: StreamHead, i: number, all: readonly StreamHead[]) =>
      ![...heads, ...all.slice(0, i)].some(({ eventId, leaf }) => eventId === head.eventId && leaf === head.leaf);
    this.#watched.set(did, {
      heads: [...heads, ...found.filter(isNew)],
      firstEventIds: firstEventIds.includes(firstEventId) ? firstEventIds : [...firstEventIds, firstEventId],
    });
  }
}

const NOT_WATCHED: WatchedAccount = { heads: [], firstEventIds: [] };
