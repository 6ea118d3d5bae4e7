// The read model over a database in memory: the latest row of each key, by a look at all rows.
import type { ChamberListing, IdeaListing, Listing } from '../../../projections/listings.ts';
import { phaseBy } from '../../../projections/phase.ts';
import type { Membership } from '../../../projections/todo.ts';
import type { AgentRecord, IdeaView } from '../../../projections/views.ts';
import type { ChamberListQuery, GraduatedQuery, ReadModel, Seat } from '../../../src/log/read-model.ts';
import type { Millis } from '../../../src/vocabulary/values.ts';
import type { MemoryDatabase } from './memory-database.ts';
import type { Network } from './memory-store.ts';

type Row<Kind extends Listing['kind']> = Extract<Listing, { readonly kind: Kind }>;

export class MemoryLists implements ReadModel {
  readonly #database: MemoryDatabase;
  readonly #network: Network;

  constructor(database: MemoryDatabase, network: Network) {
    this.#database = database;
    this.#network = network;
  }

  listChambers({ phase, before, limit, now }: ChamberListQuery): Promise<readonly ChamberListing[]> {
    return this.#read('listChambers', () =>
      this.#chambers()
        .filter((row) => row.chamberId < (before ?? Number.POSITIVE_INFINITY))
        .filter((row) => phase === undefined || phaseBy(row.ends, row.isCommitted, now) === phase)
        .slice(0, limit),
    );
  }

  listGraduatedIdeas({ limit, after }: GraduatedQuery): Promise<readonly IdeaView[]> {
    return this.#read('listGraduatedIdeas', () => {
      const ideas = this.#ideas().flatMap(({ idea }) => (idea.graduatedAt === null ? [] : [idea]));
      const ordered = ideas.sort((one, other) => compare(placeOf(other), placeOf(one)));
      return ordered
        .filter((idea) => after === undefined || compare(placeOf(idea), placeOf(after)) < 0)
        .slice(0, limit);
    });
  }

  findIdea(ticker: string, chamberId: number | undefined): Promise<IdeaView | undefined> {
    return this.#read('findIdea', () => {
      const found = this.#ideas()
        .filter(({ idea }) => idea.ticker.toLowerCase() === ticker.toLowerCase())
        .filter(({ idea }) => chamberId === undefined || idea.chamberId === chamberId);
      const key = ({ idea, proposedAt }: IdeaListing) => [idea.graduatedAt ?? '', proposedAt, idea.chamberId];
      return found.sort((one, other) => compare(key(other), key(one)))[0]?.idea;
    });
  }

  listUnsettled(now: Millis, limit: number): Promise<readonly number[]> {
    return this.#read('listUnsettled', () =>
      this.#chambers()
        .filter((row) => !row.isSettled && endOf(row) <= now)
        .sort((one, other) => endOf(one) - endOf(other) || one.chamberId - other.chamberId)
        .slice(0, limit)
        .map(({ chamberId }) => chamberId),
    );
  }

  listSettled(limit: number): Promise<readonly number[]> {
    return this.#read('listSettled', () =>
      this.#chambers()
        .filter((row) => row.isSettled)
        .sort((one, other) => endOf(other) - endOf(one) || other.chamberId - one.chamberId)
        .slice(0, limit)
        .map(({ chamberId }) => chamberId),
    );
  }

  listMemberships(did: string, limit: number): Promise<readonly Membership[]> {
    return this.#read('listMemberships', () => {
      const turns = new Map(this.#rows('turns').map((row) => [row.chamberId, row.turns]));
      const members = new Map(this.#membersOf(did).map((row) => [row.chamberId, row]));
      return this.#chambers()
        .filter(({ chamberId, isCommitted }) => !isCommitted && members.has(chamberId))
        .slice(0, limit)
        .map((chamber) => ({
          chamber,
          member: members.get(chamber.chamberId) as Row<'member'>,
          turns: turns.get(chamber.chamberId) ?? null,
          lastEventId: this.#database.head(chamber.chamberId),
        }));
    });
  }

  listChambersOf(
    did: string,
    { before = Number.POSITIVE_INFINITY, limit }: Pick<ChamberListQuery, 'before' | 'limit'>,
  ): Promise<readonly ChamberListing[]> {
    return this.#read('listChambersOf', () => {
      const joined = new Set(this.#joinedBy(did));
      return this.#chambers()
        .filter(({ chamberId }) => joined.has(chamberId) && chamberId < before)
        .slice(0, limit);
    });
  }

  listMembersAt(seats: readonly Seat[]): Promise<readonly (string | null)[]> {
    return this.#read('listMembersAt', () => {
      const members = this.#rows('member').filter(({ turnOrder }) => turnOrder !== null);
      const memberAt = ([chamberId, turnOrder]: Seat) =>
        members.find((row) => row.chamberId === chamberId && row.turnOrder === turnOrder)?.did ?? null;
      return seats.map(memberAt);
    });
  }

  agentRecord(did: string): Promise<AgentRecord> {
    return this.#read('agentRecord', () => {
      const joined = this.#joinedBy(did);
      const proposed = this.#ideas().filter(({ idea }) => idea.creatorDid === did);
      return {
        chambers: { count: joined.length, newest: joined.length === 0 ? null : Math.max(...joined) },
        proposed: proposed.length,
        graduated: proposed.filter(({ idea }) => idea.graduatedAt !== null).length,
      };
    });
  }

  countOpenChambers(creatorDid: string, max: number): Promise<number> {
    return this.#read(`countOpenChambers ${creatorDid}`, () => {
      const isOpen = (row: ChamberListing) => row.creatorDid === creatorDid && !row.isCommitted;
      return Math.min(max, this.#chambers().filter(isOpen).length);
    });
  }

  operatorEmail(did: string): Promise<string | undefined> {
    return this.#read('operatorEmail', () => this.#database.emails.get(did));
  }

  #read<Result>(name: string, work: () => Result): Promise<Result> {
    return this.#network.exchange({ name, isAppend: false }, work);
  }

  /** Newest first. */
  #chambers(): readonly ChamberListing[] {
    const latest = new Map(this.#rows('chamber').map((row) => [row.chamberId, row]));
    return [...latest.values()].sort((one, other) => other.chamberId - one.chamberId);
  }

  #ideas(): IdeaListing[] {
    return [
      ...new Map(
        this.#rows('idea').map((row) => [`${row.idea.chamberId} ${row.idea.slot} ${row.idea.ticker}`, row]),
      ).values(),
    ];
  }

  #membersOf(did: string): readonly Row<'member'>[] {
    return this.#rows('member').filter((row) => row.did === did);
  }

  #joinedBy(did: string): readonly number[] {
    const joined = this.#membersOf(did).filter(({ turnOrder }) => turnOrder !== null);
    return [...new Set(joined.map(({ chamberId }) => chamberId))];
  }

  /** The rows in the order of their commits. */
  #rows<Kind extends Listing['kind']>(kind: Kind): readonly Row<Kind>[] {
    const rows = this.#database.entries.flatMap(({ listings }) => listings);
    return rows.filter((row): row is Row<Kind> => row.kind === kind);
  }
}

function endOf({ ends }: ChamberListing): Millis {
  return ends.allocateRevealDeadline;
}

function placeOf({ graduatedAt, chamberId, slot }: Pick<IdeaView, 'graduatedAt' | 'chamberId' | 'slot'>) {
  return [graduatedAt ?? '', chamberId, slot];
}

function compare(one: readonly (string | number)[], other: readonly (string | number)[]): number {
  for (const [index, value] of one.entries()) {
    const against = other[index] as string | number;
    if (value !== against) return value < against ? -1 : 1;
  }
  return 0;
}
