// The read model's queries over the derived tables. Each reads about as many rows as it returns, by an index; conditions that always hold
// (`> ''`) make SQLite search instead of scan.
import type { ChamberListing } from '../../../projections/listings.ts';
import type { Membership } from '../../../projections/todo.ts';
import type { AgentRecord, IdeaView } from '../../../projections/views.ts';
import type { Millis, Phase } from '../../vocabulary/values.ts';
import type { ChamberListQuery, GraduatedQuery, ReadModel, Seat } from '../read-model.ts';
import { decodeChamber, decodeTurns } from './listing-json.ts';
import { type Columns, type Dialect, jsonRows, type Sql } from './sql.ts';

const CHAMBERS = 'SELECT listing FROM chambers WHERE chamber_id < $1 ORDER BY chamber_id DESC LIMIT $2';

/** projections/phase.ts in SQL, over `chambers` at the time $3. */
const IN_PHASE: Readonly<Record<Phase, string>> = {
  LOBBY: 'NOT is_committed AND lobby_deadline > $3',
  PROPOSAL: 'NOT is_committed AND lobby_deadline <= $3 AND proposal_deadline > $3',
  DEBATE: 'NOT is_committed AND proposal_deadline <= $3 AND debate_deadline > $3',
  ALLOCATE_COMMIT: 'NOT is_committed AND debate_deadline <= $3 AND allocate_commit_deadline > $3',
  ALLOCATE_REVEAL: 'NOT is_committed AND allocate_commit_deadline <= $3',
  COMMITTED: 'is_committed AND CAST($3 AS bigint) IS NOT NULL',
};

const CHAMBERS_OF = `SELECT listing FROM members JOIN chambers USING (chamber_id)
  WHERE did = $1 AND chamber_id < $2 AND turn_order IS NOT NULL ORDER BY chamber_id DESC LIMIT $3`;

const GRADUATED = `SELECT view FROM ideas WHERE graduated_at > '' AND (graduated_at, chamber_id, slot) < ($1, $2, $3)
  ORDER BY graduated_at DESC, chamber_id DESC, slot DESC LIMIT $4`;

const IDEA = `SELECT view FROM ideas WHERE lower(ticker) = $1
  ORDER BY graduated_at DESC NULLS LAST, proposed_at DESC, chamber_id DESC LIMIT 1`;

const IDEA_OF_CHAMBER = 'SELECT view FROM ideas WHERE chamber_id = $1 AND lower(ticker) = $2';

const UNSETTLED = `SELECT chamber_id FROM chambers WHERE NOT is_settled AND allocate_reveal_deadline <= $1
  ORDER BY allocate_reveal_deadline, chamber_id LIMIT $2`;

const SETTLED = `SELECT chamber_id FROM chambers WHERE is_settled AND allocate_reveal_deadline > 0
  ORDER BY allocate_reveal_deadline DESC LIMIT $1`;

const OPEN_CHAMBERS = `SELECT count(*) AS count FROM
  (SELECT 1 FROM chambers WHERE creator_did = $1 AND NOT is_committed LIMIT $2) AS open`;

const AGENT_RECORD = `SELECT count(*) AS chambers, max(chamber_id) AS newest,
    (SELECT count(*) FROM ideas WHERE creator_did = $1) AS proposed,
    (SELECT count(*) FROM ideas WHERE creator_did = $1 AND graduated_at > '') AS graduated
  FROM members WHERE did = $1 AND turn_order IS NOT NULL`;

const memberships = ({ chamberKey }: Dialect) => `SELECT listing, turn_order, has_committed, has_revealed, turn,
    (SELECT max(event_id) FROM events WHERE stream = ${chamberKey('own.chamber_id')}) AS last_event_id
  FROM (SELECT * FROM members WHERE did = $1 AND is_open ORDER BY chamber_id DESC LIMIT $2) AS own
    JOIN chambers USING (chamber_id) LEFT JOIN turns USING (chamber_id) ORDER BY own.chamber_id DESC`;

const SEATS: Columns = { chamber: 'integer', turn: 'integer' };

const CONTACT = 'SELECT operator_email FROM contacts WHERE did = $1';

interface ListingRow {
  readonly listing: string;
}

interface ViewRow {
  readonly view: string;
}

interface MembershipRow extends ListingRow {
  readonly turn_order: number | null;
  readonly has_committed: boolean | number;
  readonly has_revealed: boolean | number;
  readonly turn: string | null;
  readonly last_event_id: number;
}

type ChamberIdRow = Readonly<Record<'chamber_id', number>>;
type AgentRecordRow = Readonly<Record<'chambers' | 'newest' | 'proposed' | 'graduated', number>>;

export class Lists implements ReadModel {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async listChambers({ phase, before = ABOVE_ALL_IDS, limit, now }: ChamberListQuery) {
    const rows =
      phase === undefined
        ? await this.#sql.query<ListingRow>(CHAMBERS, [before, limit])
        : await this.#sql.query<ListingRow>(inPhase(phase), [before, limit, now]);
    return rows.map(toListing);
  }

  async listChambersOf(did: string, { before = ABOVE_ALL_IDS, limit }: Pick<ChamberListQuery, 'before' | 'limit'>) {
    return (await this.#sql.query<ListingRow>(CHAMBERS_OF, [did, before, limit])).map(toListing);
  }

  async listGraduatedIdeas({ limit, after = AFTER_ALL_TIMES }: GraduatedQuery): Promise<readonly IdeaView[]> {
    const { graduatedAt, chamberId, slot } = after;
    return (await this.#sql.query<ViewRow>(GRADUATED, [graduatedAt, chamberId, slot, limit])).map(toIdea);
  }

  async findIdea(ticker: string, chamberId: number | undefined): Promise<IdeaView | undefined> {
    // No text of PostgreSQL holds it.
    if (ticker.includes('\0')) return undefined;
    const lowerCase = ticker.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
    const [found] =
      chamberId === undefined
        ? await this.#sql.query<ViewRow>(IDEA, [lowerCase])
        : await this.#sql.query<ViewRow>(IDEA_OF_CHAMBER, [chamberId, lowerCase]);
    return found && toIdea(found);
  }

  async listUnsettled(now: Millis, limit: number): Promise<readonly number[]> {
    return (await this.#sql.query<ChamberIdRow>(UNSETTLED, [now, limit])).map(toChamberId);
  }

  async listSettled(limit: number): Promise<readonly number[]> {
    return (await this.#sql.query<ChamberIdRow>(SETTLED, [limit])).map(toChamberId);
  }

  async listMemberships(did: string, limit: number): Promise<readonly Membership[]> {
    const rows = await this.#sql.query<MembershipRow>(memberships(this.#sql.dialect), [did, limit]);
    return rows.map((row) => ({
      chamber: decodeChamber(row.listing),
      member: {
        did,
        turnOrder: row.turn_order,
        hasCommitted: Boolean(row.has_committed),
        hasRevealed: Boolean(row.has_revealed),
      },
      turns: row.turn === null ? null : decodeTurns(row.turn),
      lastEventId: row.last_event_id,
    }));
  }

  async listMembersAt(seats: readonly Seat[]): Promise<readonly (string | null)[]> {
    const listed = this.#sql.dialect.listed('$1', SEATS);
    const rows = await this.#sql.query<{ readonly did: string | null }>(
      `SELECT (SELECT did FROM members WHERE chamber_id = chamber AND turn_order = turn) AS did FROM ${listed} ORDER BY place`,
      [
        jsonRows(
          SEATS,
          seats.map(([chamber, turn]) => ({ chamber, turn })),
        ),
      ],
    );
    return rows.map(({ did }) => did);
  }

  async countOpenChambers(creatorDid: string, max: number): Promise<number> {
    const [row] = await this.#sql.query<{ readonly count: number }>(OPEN_CHAMBERS, [creatorDid, max]);
    return row?.count ?? 0;
  }

  async agentRecord(did: string): Promise<AgentRecord> {
    const [row] = await this.#sql.query<AgentRecordRow>(AGENT_RECORD, [did]);
    const { chambers: count = 0, newest = null, proposed = 0, graduated = 0 } = row ?? {};
    return { chambers: { count, newest }, proposed, graduated };
  }

  async operatorEmail(did: string): Promise<string | undefined> {
    const [row] = await this.#sql.query<{ readonly operator_email: Buffer }>(CONTACT, [did]);
    return row?.operator_email.toString();
  }
}

/** The ids are found first, in SQLite by an index that has the deadlines too. */
function inPhase(phase: Phase): string {
  return `SELECT listing FROM chambers WHERE chamber_id IN (
      SELECT chamber_id FROM chambers WHERE chamber_id < $1 AND ${IN_PHASE[phase]} ORDER BY chamber_id DESC LIMIT $2)
    ORDER BY chamber_id DESC`;
}

const ABOVE_ALL_IDS = Number.MAX_SAFE_INTEGER;

/** Sorts after every timestamp. */
const AFTER_ALL_TIMES = { graduatedAt: '~', chamberId: 0, slot: 0 };

function toListing({ listing }: ListingRow): ChamberListing {
  return decodeChamber(listing);
}

function toIdea({ view }: ViewRow): IdeaView {
  return JSON.parse(view) as IdeaView;
}

function toChamberId({ chamber_id: id }: ChamberIdRow): number {
  return id;
}
