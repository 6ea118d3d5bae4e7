// An agent's chambers that are not over, for GET /me/todo. They are kept in memory, in two parts, and joined: to read 200 of them from
// four tables takes several times as long as all else. Why nothing is stale: no other process appends to the log, and within the
// transaction that writes an event, `forget` drops what all members of its chamber share (`known`), with every list that shows it, and,
// if it writes a row of a member, that agent's own part (`own`). A chamber that is over stays in own parts; what is shared says that it
// is over.
import type { Database } from 'better-sqlite3';
import { LRUCache } from 'lru-cache';
import type { ChamberListing } from '../../../projections/listings.ts';
import type { Membership } from '../../../projections/todo.ts';
import { decodeChamber, decodeTurns } from '../listing-json.ts';
import type { LogEntry } from '../log.ts';
import type { EventIndex } from './event-index.ts';

/** About 700 bytes each. More than a list has, so that to read one part of it does not drop another. */
const CHAMBERS_KNOWN_MAX = 32_768;

/** Memberships, of all agents together. */
const OWN_SIZE_MAX = 32_768;

/** An agent's own part. */
interface Own {
  readonly rows: readonly OwnMembership[];
  /** Both parts joined; undefined once a chamber of it has changed. */
  list: readonly Membership[] | undefined;
}

interface OwnMembership {
  readonly chamberId: number;
  readonly member: Membership['member'];
}

interface KnownChamber extends Omit<Membership, 'member'> {
  readonly chamber: ChamberListing;
  /** The members by turn order, as far as they were asked for. */
  readonly members: string[];
  /** The agents whose lists show it. */
  readonly listedFor: Set<string>;
}

export class Memberships {
  readonly #known: LRUCache<number, KnownChamber>;
  readonly #own = new LRUCache<string, Own>({ maxSize: OWN_SIZE_MAX, sizeCalculation: ({ rows }) => rows.length + 1 });
  readonly #index: EventIndex;
  readonly #statements: Statements;

  constructor(db: Database, index: EventIndex, chambersMax = CHAMBERS_KNOWN_MAX) {
    this.#index = index;
    this.#statements = prepare(db);
    const dispose = ({ listedFor }: KnownChamber) => {
      for (const did of listedFor) {
        const own = this.#own.peek(did);
        if (own !== undefined) own.list = undefined;
      }
    };
    // With `max` it would allocate for all of them at once.
    this.#known = new LRUCache({ maxSize: chambersMax, sizeCalculation: () => 1, dispose });
  }

  /** Newest first; the same array as before as long as nothing of it has changed. */
  list(did: string, limit: number): readonly Membership[] {
    const own = this.#own.get(did) ?? this.#readOwn(did, limit);
    own.list ??= this.#join(did, own.rows);
    return own.list.length > limit ? own.list.slice(0, limit) : own.list;
  }

  #join(did: string, rows: readonly OwnMembership[]): readonly Membership[] {
    // Not `has`: those that are known must not be dropped while the others are read.
    const unknown = rows.flatMap(({ chamberId }) => (this.#known.get(chamberId) === undefined ? [chamberId] : []));
    if (unknown.length > 0) this.#read(unknown);
    const memberships: Membership[] = [];
    for (const { chamberId, member } of rows) {
      const known = this.#known.get(chamberId);
      if (known === undefined || known.chamber.isCommitted) continue;
      known.listedFor.add(did);
      const { chamber, turns, lastEventId } = known;
      memberships.push({ chamber, member, turns, lastEventId });
    }
    return memberships;
  }

  /** Reads the agent's rows, and keeps them if none is left out. */
  #readOwn(did: string, limit: number): Own {
    const rows = this.#statements.own.all(did, limit).map(([chamberId, turnOrder, hasCommitted, hasRevealed]) => {
      return {
        chamberId,
        member: { did, turnOrder, hasCommitted: hasCommitted === 1, hasRevealed: hasRevealed === 1 },
      };
    });
    const own = { rows, list: undefined };
    if (rows.length < limit) this.#own.set(did, own);
    return own;
  }

  #read(chamberIds: readonly number[]): void {
    for (const row of this.#statements.chambers.all(JSON.stringify(chamberIds))) {
      const { chamber_id: id, listing, turn, indexed_event_id: indexed } = row;
      const turns = turn === null ? null : decodeTurns(turn);
      const lastEventId = this.#index.lastEventId(id, indexed);
      const listedFor = new Set<string>();
      this.#known.set(id, { chamber: decodeChamber(listing), turns, lastEventId, members: [], listedFor });
    }
  }

  /** Must be called in the transaction that writes the event. */
  forget({ stream, listings }: Pick<LogEntry, 'stream' | 'listings'>): void {
    if (typeof stream === 'number') this.#known.delete(stream);
    for (const listing of listings) if (listing.kind === 'member') this.#own.delete(listing.did);
  }

  /** Undefined if the chamber has no member of that turn order. */
  memberAt(chamberId: number, turnOrder: number): string | undefined {
    const members = this.#known.get(chamberId)?.members;
    const known = members?.[turnOrder];
    if (known !== undefined) return known;
    const did = this.#statements.memberAt.get(chamberId, turnOrder);
    if (members !== undefined && did !== undefined) members[turnOrder] = did;
    return did;
  }
}

type OwnRow = [chamberId: number, turnOrder: number | null, hasCommitted: number, hasRevealed: number];

interface KnownChamberRow {
  readonly chamber_id: number;
  readonly listing: string;
  readonly turn: string | null;
  readonly indexed_event_id: number | null;
}

type Statements = ReturnType<typeof prepare>;

function prepare(db: Database) {
  return {
    // The rows are arrays: objects would take twice the time.
    own: db
      .prepare<[string, number], OwnRow>(
        `SELECT chamber_id, turn_order, has_committed, has_revealed FROM members INDEXED BY members_open
         WHERE did = ? AND is_open ORDER BY chamber_id DESC LIMIT ?`,
      )
      .raw(),
    // The + takes the type of the id away: with it the index of stream_events, of no type, would not be used.
    chambers: db.prepare<[string], KnownChamberRow>(
      `SELECT chamber_id, listing, turn, (SELECT max(event_id) FROM stream_events WHERE stream = +chambers.chamber_id) AS indexed_event_id
       FROM json_each(?) AS asked CROSS JOIN chambers ON chambers.chamber_id = asked.value LEFT JOIN turns USING (chamber_id)`,
    ),
    memberAt: db
      .prepare<[number, number], string>('SELECT did FROM members WHERE chamber_id = ? AND turn_order = ?')
      .pluck(),
  };
}
