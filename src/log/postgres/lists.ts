// The read model in PostgreSQL. No table of phases: which one a chamber is in follows from its deadlines, by an index for each.
import type { Membership } from '../../../projections/todo.ts';
import type { Phase } from '../../vocabulary/values.ts';
import { decodeChamber, decodeTurns } from '../listing-json.ts';
import { DerivedLists, LIST_QUERIES, type ListingRow, type PhaseQuery } from '../lists.ts';
import type { Seat } from '../read-model.ts';
import { bigintArray } from './arrays.ts';
import type { Query } from './connections.ts';

/** projections/phase.ts in SQL, over `chambers` at the time $3. */
const IN_PHASE: Readonly<Record<Phase, string>> = {
  LOBBY: 'NOT is_committed AND lobby_deadline > $3',
  PROPOSAL: 'NOT is_committed AND lobby_deadline <= $3 AND proposal_deadline > $3',
  DEBATE: 'NOT is_committed AND proposal_deadline <= $3 AND debate_deadline > $3',
  ALLOCATE_COMMIT: 'NOT is_committed AND debate_deadline <= $3 AND allocate_commit_deadline > $3',
  ALLOCATE_REVEAL: 'NOT is_committed AND allocate_commit_deadline <= $3',
  COMMITTED: 'is_committed AND $3::bigint IS NOT NULL',
};

export const PHASE_INDEXES = `
CREATE INDEX chambers_in_lobby ON chambers (lobby_deadline) WHERE NOT is_committed;
CREATE INDEX chambers_in_proposal ON chambers (proposal_deadline) WHERE NOT is_committed;
CREATE INDEX chambers_in_debate ON chambers (debate_deadline) WHERE NOT is_committed;
CREATE INDEX chambers_in_commit ON chambers (allocate_commit_deadline) WHERE NOT is_committed;
CREATE INDEX chambers_committed ON chambers (chamber_id) WHERE is_committed;
`;

export class PostgresLists extends DerivedLists {
  readonly #query: Query;

  constructor(query: Query) {
    super((name, values) => query(name, LIST_QUERIES[name], values));
    this.#query = query;
  }

  protected listPhase({ phase, before, limit, now }: PhaseQuery): Promise<readonly ListingRow[]> {
    return this.#query(
      `chambers ${phase}`,
      `SELECT listing FROM chambers WHERE chamber_id < $1 AND ${IN_PHASE[phase]} ORDER BY chamber_id DESC LIMIT $2`,
      [before, limit, now],
    );
  }

  async listMemberships(did: string, limit: number): Promise<readonly Membership[]> {
    const rows = await this.#query<MembershipRow>(
      'memberships',
      `SELECT listing, turn_order, has_committed, has_revealed, turn,
         (SELECT max(event_id) FROM events WHERE stream = chamber_id::text) AS last_event_id
       FROM members JOIN chambers USING (chamber_id) LEFT JOIN turns USING (chamber_id)
       WHERE did = $1 AND is_open ORDER BY chamber_id DESC LIMIT $2`,
      [did, limit],
    );
    return rows.map(
      ({ listing, turn_order: order, has_committed: hasCommitted, has_revealed: hasRevealed, ...row }) => ({
        chamber: decodeChamber(listing),
        member: { did, turnOrder: order === null ? null : Number(order), hasCommitted, hasRevealed },
        turns: row.turn === null ? null : decodeTurns(row.turn),
        lastEventId: Number(row.last_event_id),
      }),
    );
  }

  async listMembersAt(seats: readonly Seat[]): Promise<readonly (string | null)[]> {
    const rows = await this.#query<{ readonly did: string | null }>(
      'members at',
      `SELECT (SELECT did FROM members WHERE chamber_id = seats.id AND turn_order = seats.place) AS did
       FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS seats (id, place, row) ORDER BY seats.row`,
      [bigintArray(seats.map(([chamberId]) => chamberId)), bigintArray(seats.map(([, turnOrder]) => turnOrder))],
    );
    return rows.map(({ did }) => did);
  }
}

interface MembershipRow extends ListingRow {
  readonly turn_order: string | null;
  readonly has_committed: boolean;
  readonly has_revealed: boolean;
  readonly turn: string | null;
  readonly last_event_id: string;
}
