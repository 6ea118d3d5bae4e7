// An agent's chambers that are not over, for GET /me/todo. They are kept in memory, in two parts: to read 200 of them from four
// tables takes several times as long as all else. Why no part is stale: no other process appends to the log, and within the
// transaction that writes them, each event of a chamber drops what all its members share (`known`), and each row of a member
// drops that agent's own part (`own`). A chamber that is over stays in own parts; what is shared says that it is over.
import type { Database } from 'better-sqlite3';
import { LRUCache } from 'lru-cache';
import type { ChamberListing } from '../../../projections/listings.ts';
import { NO_TURNS, type TurnPhase, type Turns } from '../../../projections/phase.ts';
import type { Membership } from '../../../projections/todo.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { EventIndex } from './event-index.ts';
import { type ChamberRow, fromRow } from './listings.ts';

/** About 700 bytes each. */
const CHAMBERS_KNOWN_MAX = 32_768;

/** Memberships, of all agents together. */
const OWN_SIZE_MAX = 32_768;

interface OwnMembership {
  readonly chamberId: number;
  readonly member: Membership['member'];
}

interface KnownChamber extends Omit<Membership, 'member'> {
  readonly chamber: ChamberListing;
  /** By turn order, as far as they were asked for. */
  readonly members: string[];
}

export class Memberships {
  readonly known = new LRUCache<number, KnownChamber>({ max: CHAMBERS_KNOWN_MAX });
  /** By DID. */
  readonly own = new LRUCache<string, readonly OwnMembership[]>({
    maxSize: OWN_SIZE_MAX,
    sizeCalculation: ({ length }) => length + 1,
  });
  readonly #index: EventIndex;
  readonly #statements: Statements;

  constructor(db: Database, index: EventIndex) {
    this.#index = index;
    this.#statements = prepare(db);
  }

  /** Newest first. */
  list(did: string, limit: number): readonly Membership[] {
    const own = this.own.get(did) ?? this.#readOwn(did, limit);
    const unknown = own.flatMap(({ chamberId }) => (this.known.has(chamberId) ? [] : [chamberId]));
    if (unknown.length > 0) this.#read(unknown);
    const memberships: Membership[] = [];
    for (const { chamberId, member } of own) {
      const known = this.known.get(chamberId);
      if (known === undefined || known.chamber.isCommitted) continue;
      const { chamber, turns, lastEventId } = known;
      memberships.push({ chamber, member, turns, lastEventId });
    }
    return memberships.slice(0, limit);
  }

  /** Kept if it is whole. */
  #readOwn(did: string, limit: number): readonly OwnMembership[] {
    const rows = this.#statements.own.all(did, limit);
    const own = rows.map(([chamberId, turnOrder, hasCommitted, hasRevealed]) => {
      return {
        chamberId,
        member: { did, turnOrder, hasCommitted: hasCommitted === 1, hasRevealed: hasRevealed === 1 },
      };
    });
    if (own.length < limit) this.own.set(did, own);
    return own;
  }

  #read(chamberIds: readonly number[]): void {
    for (const row of this.#statements.chambers.all(JSON.stringify(chamberIds))) {
      const { turn_phase: phase, turn_order: count, since, turn_pace: pace, indexed_event_id: indexed } = row;
      const own = pace === null ? {} : (JSON.parse(pace) as Omit<Turns, 'phase' | 'count' | 'since'>);
      const turns = since === null ? null : { ...NO_TURNS, phase, count: count ?? 0, since, ...own };
      const lastEventId = this.#index.lastEventId(row.chamber_id, indexed);
      this.known.set(row.chamber_id, { chamber: fromRow(row), turns, lastEventId, members: [] });
    }
  }

  /** Undefined if the chamber has no member of that turn order. */
  memberAt(chamberId: number, turnOrder: number): string | undefined {
    const members = this.known.get(chamberId)?.members;
    const known = members?.[turnOrder];
    if (known !== undefined) return known;
    const did = this.#statements.memberAt.get(chamberId, turnOrder);
    if (members !== undefined && did !== undefined) members[turnOrder] = did;
    return did;
  }
}

type OwnRow = [chamberId: number, turnOrder: number | null, hasCommitted: number, hasRevealed: number];

interface KnownChamberRow extends ChamberRow {
  readonly turn_phase: TurnPhase | null;
  readonly turn_order: number | null;
  readonly since: Millis | null;
  readonly turn_pace: string | null;
  readonly indexed_event_id: number | null;
}

type Statements = ReturnType<typeof prepare>;

function prepare(db: Database) {
  return {
    // As arrays: objects would take twice the time.
    own: db
      .prepare<[string, number], OwnRow>(
        `SELECT chamber_id, turn_order, has_committed, has_revealed FROM members INDEXED BY members_open
         WHERE did = ? AND is_open = 1 ORDER BY chamber_id DESC LIMIT ?`,
      )
      .raw(),
    // The + takes the type of the id away: with it the index of stream_events, of no type, would not be used.
    chambers: db.prepare<[string], KnownChamberRow>(
      `SELECT chambers.*, turns.phase AS turn_phase, turn_order, since, turns.pace AS turn_pace,
         (SELECT max(event_id) FROM stream_events WHERE stream = +chambers.chamber_id) AS indexed_event_id
       FROM json_each(?) AS asked CROSS JOIN chambers ON chambers.chamber_id = asked.value LEFT JOIN turns USING (chamber_id)`,
    ),
    memberAt: db
      .prepare<[number, number], string>('SELECT did FROM members WHERE chamber_id = ? AND turn_order = ?')
      .pluck(),
  };
}
