// The read model's queries, each by an index.
import type { ChamberListing } from '../../../projections/listings.ts';
import type { Membership } from '../../../projections/todo.ts';
import type { AgentRecord, IdeaView } from '../../../projections/views.ts';
import type { Millis, Phase } from '../../vocabulary/values.ts';
import { decodeChamber, decodeTurns } from '../pace-rows.ts';
import type { ChamberListQuery, GraduatedQuery, ReadModel, Seat } from '../read-model.ts';
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

export class PostgresLists implements ReadModel {
  readonly #query: Query;

  constructor(query: Query) {
    this.#query = query;
  }

  async listChambers({ phase, before, limit, now }: ChamberListQuery) {
    const inPhase = phase === undefined ? '$3::bigint IS NOT NULL' : IN_PHASE[phase];
    const rows = await this.#query<{ readonly listing: string }>(
      `chambers ${phase ?? ''}`,
      `SELECT listing FROM chambers WHERE chamber_id < $1 AND ${inPhase} ORDER BY chamber_id DESC LIMIT $2`,
      [before ?? Number.MAX_SAFE_INTEGER, limit, now],
    );
    return rows.map(({ listing }) => decodeChamber(listing));
  }

  async listGraduatedIdeas({ limit, after }: GraduatedQuery): Promise<readonly IdeaView[]> {
    const { graduatedAt, chamberId, slot } = after ?? { graduatedAt: '~', chamberId: 0, slot: 0 };
    const rows = await this.#query<ViewRow>(
      'graduated',
      `SELECT view FROM ideas WHERE graduated_at IS NOT NULL AND (graduated_at, chamber_id, slot) < ($1, $2, $3)
       ORDER BY graduated_at DESC, chamber_id DESC, slot DESC LIMIT $4`,
      [graduatedAt, chamberId, slot, limit],
    );
    return rows.map(toIdea);
  }

  async findIdea(ticker: string, chamberId: number | undefined) {
    // No text of PostgreSQL holds it.
    if (ticker.includes('\0')) return undefined;
    const [found] = await this.#query<ViewRow>(
      'idea',
      `SELECT view FROM ideas WHERE lower(ticker) = lower($1::text COLLATE "C") AND chamber_id = coalesce($2, chamber_id)
       ORDER BY graduated_at DESC NULLS LAST, proposed_at DESC, chamber_id DESC LIMIT 1`,
      [ticker, chamberId ?? null],
    );
    return found && toIdea(found);
  }

  async listUnsettled(now: Millis, limit: number): Promise<readonly number[]> {
    const rows = await this.#query<ChamberRow>(
      'unsettled',
      `SELECT chamber_id FROM chambers WHERE NOT is_settled AND allocate_reveal_deadline <= $1
       ORDER BY allocate_reveal_deadline, chamber_id LIMIT $2`,
      [now, limit],
    );
    return rows.map(toChamberId);
  }

  async listSettled(limit: number): Promise<readonly number[]> {
    const rows = await this.#query<ChamberRow>(
      'settled',
      'SELECT chamber_id FROM chambers WHERE is_settled ORDER BY allocate_reveal_deadline DESC LIMIT $1',
      [limit],
    );
    return rows.map(toChamberId);
  }

  async countOpenChambers(creatorDid: string, max: number): Promise<number> {
    const [row] = await this.#query<{ readonly count: string }>(
      'open chambers',
      'SELECT count(*) FROM (SELECT FROM chambers WHERE creator_did = $1 AND NOT is_committed LIMIT $2) AS open',
      [creatorDid, max],
    );
    return Number(row?.count);
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

  async listChambersOf(
    did: string,
    { before = Number.MAX_SAFE_INTEGER, limit }: Pick<ChamberListQuery, 'before' | 'limit'>,
  ): Promise<readonly ChamberListing[]> {
    const rows = await this.#query<{ readonly listing: string }>(
      'chambers of',
      `SELECT listing FROM members JOIN chambers USING (chamber_id)
       WHERE did = $1 AND chamber_id < $2 AND turn_order IS NOT NULL ORDER BY chamber_id DESC LIMIT $3`,
      [did, before, limit],
    );
    return rows.map(({ listing }) => decodeChamber(listing));
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

  async agentRecord(did: string): Promise<AgentRecord> {
    const [row] = await this.#query<{
      readonly chambers: string;
      newest: string | null;
      proposed: string;
      graduated: string;
    }>(
      'agent record',
      `SELECT count(*) AS chambers, max(chamber_id) AS newest, (SELECT count(*) FROM ideas WHERE creator_did = $1) AS proposed,
         (SELECT count(*) FROM ideas WHERE creator_did = $1 AND graduated_at IS NOT NULL) AS graduated
       FROM members WHERE did = $1 AND turn_order IS NOT NULL`,
      [did],
    );
    const newest = row?.newest == null ? null : Number(row.newest);
    const chambers = { count: Number(row?.chambers), newest };
    return { chambers, proposed: Number(row?.proposed), graduated: Number(row?.graduated) };
  }

  async operatorEmail(did: string): Promise<string | undefined> {
    const [row] = await this.#query<{ readonly operator_email: Buffer }>(
      'contact',
      'SELECT operator_email FROM contacts WHERE did = $1',
      [did],
    );
    return row?.operator_email.toString();
  }
}

interface MembershipRow {
  readonly listing: string;
  readonly turn_order: string | null;
  readonly has_committed: boolean;
  readonly has_revealed: boolean;
  readonly turn: string | null;
  readonly last_event_id: string;
}

interface ViewRow {
  readonly view: string;
}

interface ChamberRow {
  readonly chamber_id: string;
}

function toIdea({ view }: ViewRow): IdeaView {
  return JSON.parse(view) as IdeaView;
}

function toChamberId({ chamber_id: id }: ChamberRow): number {
  return Number(id);
}
