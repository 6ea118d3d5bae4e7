// What a chamber's events say of their signers' accounts, compared without those.
import type { MoveEvent } from '../../vocabulary/events.ts';
import { instantOf, type Millis } from '../../vocabulary/values.ts';
import type { Findings } from '../report/findings.ts';

/** Events of one agent that were decided on the same line of its account. */
export interface AccountReference {
  /** The first of them. */
  readonly eventId: number;
  readonly at: Millis;
  /** The last of them. */
  lastEventId: number;
  lastAt: Millis;
  readonly did: string;
  /** undefined in events of an earlier release. */
  readonly accountEventId: number | undefined;
  readonly type: MoveEvent['type'];
  /** What the event records of the account. */
  readonly recorded: RecordedAccount;
}

/** A proposal records the wallet, a join all of it; a join of an earlier release nothing. */
export interface RecordedAccount {
  readonly creatorWallet?: string | undefined;
  readonly walletAddress?: string | undefined;
  readonly walletProven?: boolean;
  readonly label?: string | null;
}

const NAMING_TYPES: ReadonlySet<MoveEvent['type']> = new Set(['chamber.created', 'chamber.joined', 'chamber.proposed']);

/** Whether all but the first release named account lines in events of this type. */
export function isOfNamingType({ type }: Pick<AccountReference, 'type'>): boolean {
  return NAMING_TYPES.has(type);
}

/** Takes the moves of a chamber in their order. What an agent repeats takes no memory. */
export class AccountReferences implements Iterable<AccountReference> {
  readonly #references: AccountReference[] = [];
  /** The newest reference of each agent, over events of types that record nothing else of the account. */
  readonly #newest = new Map<string, AccountReference>();
  /** The first event that names an account line, and the first of a release in which every event does. */
  #firstNaming: number | undefined;
  #firstOfEvery: number | undefined;

  [Symbol.iterator](): Iterator<AccountReference> {
    return this.#references.values();
  }

  /** A proposal by a seat of a wallet holds the wallet of the seat, not the one of its account line. */
  take(event: MoveEvent, eventId: number, { isWalletOfSeat = false } = {}): void {
    const { type, did, ts } = event;
    const { accountEventId } = event.payload;
    const at = instantOf(ts);
    const recorded = type === 'chamber.proposed' && isWalletOfSeat ? {} : recordedIn(event);
    if (accountEventId !== undefined) this.#firstNaming ??= eventId;
    const isOfEvery = accountEventId !== undefined && !isOfNamingType(event);
    if (isOfEvery || recorded.walletProven !== undefined) this.#firstOfEvery ??= eventId;
    const newest = this.#newest.get(did);
    if (!isOfNamingType(event) && newest !== undefined && newest.accountEventId === accountEventId) {
      newest.lastEventId = eventId;
      newest.lastAt = at;
      return;
    }
    const reference = { eventId, at, lastEventId: eventId, lastAt: at, did, accountEventId, type, recorded };
    this.#references.push(reference);
    if (isOfNamingType(event)) this.#newest.delete(did);
    else this.#newest.set(did, reference);
  }

  /** Once a release names account lines, every later event does; the lines of an agent never go back; and each binds one wallet. */
  check(findings: Findings): void {
    const newest = new Map<string, AccountReference>();
    const wallets = new Map<string, AccountReference>();
    for (const reference of this.#references) {
      const { eventId, did, accountEventId, recorded } = reference;
      const omission = this.#omissionOf(reference);
      if (omission !== undefined) findings.judge('registration', [reference.lastEventId], omission);
      if (accountEventId === undefined) continue;
      const before = newest.get(did);
      const { accountEventId: newestId = 0 } = before ?? {};
      const named = `event ${eventId} names event ${accountEventId} of the account of ${did}`;
      if (before !== undefined && accountEventId < newestId) {
        const problem = `${named}, although event ${before.eventId} named event ${newestId} before`;
        findings.judge('registration', [before.eventId, eventId], problem);
      }
      if (accountEventId > newestId) newest.set(did, reference);
      const wallet = walletIn(recorded);
      if (wallet === undefined) continue;
      const line = `${did} ${accountEventId}`;
      const other = wallets.get(line);
      if (other === undefined) wallets.set(line, reference);
      else if (walletIn(other.recorded) !== wallet) {
        const problem = `${named} for ${wallet}, and event ${other.eventId} for ${walletIn(other.recorded)}`;
        findings.judge('registration', [other.eventId, eventId], problem);
      }
    }
  }

  #omissionOf(reference: AccountReference): string | undefined {
    const { lastEventId, accountEventId, did, type, recorded } = reference;
    const every = this.#firstOfEvery ?? Number.POSITIVE_INFINITY;
    const first = isOfNamingType(reference) ? (this.#firstNaming ?? every) : every;
    if (accountEventId === undefined && recorded.walletProven !== undefined)
      return `event ${lastEventId} records the wallet of ${did}, but names no line of its account`;
    if (accountEventId === undefined) {
      return first < lastEventId
        ? `event ${lastEventId} names no account line, although event ${first} does`
        : undefined;
    }
    const isBareJoin = type === 'chamber.joined' && recorded.walletProven === undefined;
    return isBareJoin && every < lastEventId ? `event ${lastEventId} does not record the wallet of ${did}` : undefined;
  }
}

/** What a move records of its signer's account. */
export function recordedIn({ type, payload }: MoveEvent): RecordedAccount {
  if (type === 'chamber.proposed') return { creatorWallet: payload.creatorWallet };
  if (type !== 'chamber.joined' || payload.walletAddress === undefined) return {};
  const { walletAddress, walletProven = false, label = null } = payload;
  return { walletAddress, walletProven, label };
}

export function walletIn({ creatorWallet, walletAddress }: RecordedAccount): string | undefined {
  return creatorWallet ?? walletAddress;
}
