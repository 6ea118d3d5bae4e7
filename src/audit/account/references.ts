// Collects the account references in a chamber's events, and checks them against each other.
import type { MoveEvent } from '../../vocabulary/events.ts';
import { instantOf, type Millis } from '../../vocabulary/values.ts';
import type { Findings } from '../report/findings.ts';

/** Events of one agent that name the same account line. */
export interface AccountReference {
  readonly eventId: number;
  readonly at: Millis;
  lastEventId: number;
  lastAt: Millis;
  readonly did: string;
  /** undefined in events of earlier releases. */
  readonly accountEventId: number | undefined;
  readonly type: MoveEvent['type'];
  readonly recorded: RecordedAccount;
}

/** A proposal records only the wallet; joins written by earlier releases record nothing. */
export interface RecordedAccount {
  readonly creatorWallet?: string | undefined;
  readonly walletAddress?: string | undefined;
  readonly walletProven?: boolean;
  /** Absent in a stub. */
  readonly label?: string | null;
  readonly isStub?: true;
}

const NAMING_TYPES: ReadonlySet<MoveEvent['type']> = new Set(['chamber.created', 'chamber.joined', 'chamber.proposed']);

/** Whether every release except the first names account lines in events of this type. */
export function isNamingType({ type }: Pick<AccountReference, 'type'>): boolean {
  return NAMING_TYPES.has(type);
}

/** Takes a chamber's moves in order. Consecutive moves with the same reference share one entry. */
export class AccountReferences implements Iterable<AccountReference> {
  readonly #references: AccountReference[] = [];
  /** By agent, for event types that record no other account data. */
  readonly #newest = new Map<string, AccountReference>();
  /** The first event that names an account line, and the first event written by a release in which every event does. */
  #firstNaming: number | undefined;
  #firstOfNamingRelease: number | undefined;

  [Symbol.iterator](): Iterator<AccountReference> {
    return this.#references.values();
  }

  /** A proposal made from the seat of a proven wallet records that wallet instead of the account line's. */
  take(event: MoveEvent, eventId: number, { isWalletOfSeat = false } = {}): void {
    const { type, did, ts } = event;
    const { accountEventId } = event.payload;
    const at = instantOf(ts);
    const recorded = type === 'chamber.proposed' && isWalletOfSeat ? {} : recordedIn(event);
    if (accountEventId !== undefined) this.#firstNaming ??= eventId;
    const isFromNamingRelease = accountEventId !== undefined && !isNamingType(event);
    if (isFromNamingRelease || recorded.walletProven !== undefined) this.#firstOfNamingRelease ??= eventId;
    const newest = this.#newest.get(did);
    if (!isNamingType(event) && newest !== undefined && newest.accountEventId === accountEventId) {
      newest.lastEventId = eventId;
      newest.lastAt = at;
      return;
    }
    const reference = { eventId, at, lastEventId: eventId, lastAt: at, did, accountEventId, type, recorded };
    this.#references.push(reference);
    if (isNamingType(event)) this.#newest.delete(did);
    else this.#newest.set(did, reference);
  }

  /** Once a release names account lines, all later events do; an agent never returns to an earlier line; and each line binds one wallet. */
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
        const problem = `${named}, although event ${before.eventId} had already named event ${newestId}`;
        findings.judge('registration', [before.eventId, eventId], problem);
      }
      if (accountEventId > newestId) newest.set(did, reference);
      const wallet = walletIn(recorded);
      if (wallet === undefined) continue;
      const line = `${did} ${accountEventId}`;
      const other = wallets.get(line);
      if (other === undefined) wallets.set(line, reference);
      else if (walletIn(other.recorded) !== wallet) {
        const problem = `${named} for ${wallet}, but event ${other.eventId} names it for ${walletIn(other.recorded)}`;
        findings.judge('registration', [other.eventId, eventId], problem);
      }
    }
  }

  #omissionOf(reference: AccountReference): string | undefined {
    const { lastEventId, accountEventId, did, type, recorded } = reference;
    const every = this.#firstOfNamingRelease ?? Number.POSITIVE_INFINITY;
    const first = isNamingType(reference) ? (this.#firstNaming ?? every) : every;
    if (accountEventId === undefined && recorded.walletProven !== undefined)
      return `event ${lastEventId} records the wallet of ${did}, but names no line of its account`;
    if (accountEventId === undefined) {
      return first < lastEventId
        ? `event ${lastEventId} names no account line, although event ${first} names one`
        : undefined;
    }
    const isBareJoin = type === 'chamber.joined' && recorded.walletProven === undefined;
    return isBareJoin && every < lastEventId ? `event ${lastEventId} does not record the wallet of ${did}` : undefined;
  }
}

export function recordedIn({ type, payload, withheld }: MoveEvent): RecordedAccount {
  if (type === 'chamber.proposed') return { creatorWallet: payload.creatorWallet };
  if (type !== 'chamber.joined' || payload.walletAddress === undefined) return {};
  const { walletAddress, walletProven = false, label = null } = payload;
  return withheld === undefined
    ? { walletAddress, walletProven, label }
    : { walletAddress, walletProven, isStub: true };
}

export function walletIn({ creatorWallet, walletAddress }: RecordedAccount): string | undefined {
  return creatorWallet ?? walletAddress;
}
