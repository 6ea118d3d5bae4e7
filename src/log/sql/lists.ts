// The read model's queries over the derived tables. Each uses an index to read about as many rows as it returns. Conditions that are always
// true (`> ''`) make SQLite search an index instead of scanning a table.
import type { ChamberListing } from '../../../projections/listings.ts';
import type { Membership } from '../../../projections/todo.ts';
import type { AgentRecord, IdeaView } from '../../../projections/views.ts';
import type { Millis, Phase } from '../../vocabulary/values.ts';
import type { ChamberListQuery, GraduatedQuery, MemberPosition, ReadModel } from '../read-model.ts';
import { decodeChamber, decodeIdea, WITHDRAWN_MARK } from './listing-json.ts';
import { type MembershipRow, toMembership } from './memberships.ts';
import { type Columns, type Dialect, jsonRows, type Sql, type SqlValue } from './sql.ts';

const CHAMBERS = 'SELECT listing FROM chambers WHERE chamber_id < $1 ORDER BY chamber_id DESC LIMIT $2';

/** The SQL form of projections/phase.ts; $3 is the current time. */
const IN_PHASE: Readonly<Record<Phase, string>> = {
  LOBBY: 'NOT is_committed AND lobby_deadline > $3',
  PROPOSAL: 'NOT is_committed AND lobby_deadline <= $3 AND proposal_deadline > $3',
  DEBATE: 'NOT is_committed AND proposal_deadline <= $3 AND debate_deadline > $3',
  ALLOCATE_COMMIT: 'NOT is_committed AND debate_deadline <= $3 AND allocate_commit_deadline > $3',
  ALLOCATE_REVEAL: 'NOT is_committed AND allocate_commit_deadline <= $3',
  COMMITTED: 'is_committed AND CAST($3 AS bigint) IS NOT NULL',
};

/** Finds the ids first, because SQLite has an index that also contains the deadlines. */
const chambersIn = (phase: Phase) => `SELECT listing FROM chambers WHERE chamber_id IN (
    SELECT chamber_id FROM chambers WHERE chamber_id < $1 AND ${IN_PHASE[phase]} ORDER BY chamber_id DESC LIMIT $2)
  ORDER BY chamber_id DESC`;

const CHAMBERS_OF = `SELECT listing FROM members JOIN chambers USING (chamber_id)
  WHERE did = $1 AND chamber_id < $2 AND turn_order IS NOT NULL ORDER BY chamber_id DESC LIMIT $3`;

const GRADUATED = `SELECT view FROM ideas WHERE graduated_at > '' AND (graduated_at, chamber_id, slot) < ($1, $2, $3)
  ORDER BY graduated_at DESC, chamber_id DESC, slot DESC LIMIT $4`;

const IDEA = `SELECT view FROM ideas WHERE lower(ticker) = $1
  ORDER BY graduated_at DESC NULLS LAST, proposed_at DESC, chamber_id DESC LIMIT 1`;

const IDEA_OF_CHAMBER = 'SELECT view FROM ideas WHERE lower(ticker) = $1 AND chamber_id = $2';

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

const CHAMBERS_LISTED: Columns = { chamber: 'integer' };

const withIdea = ({ listed }: Dialect) => `SELECT chamber AS chamber_id FROM ${listed('$1', CHAMBERS_LISTED)}
  WHERE EXISTS (SELECT 1 FROM ideas
    WHERE creator_did = $2 AND ideas.chamber_id = chamber AND view NOT LIKE '%${WITHDRAWN_MARK}%')`;

const POSITIONS: Columns = { chamber: 'integer', turn: 'integer' };

const membersAt = ({ listed }: Dialect) => `SELECT (
    SELECT did FROM members WHERE chamber_id = chamber AND turn_order = turn) AS did
  FROM ${listed('$1', POSITIONS)} ORDER BY place`;

type AgentRecordRow = Readonly<Record<'chambers' | 'newest' | 'proposed' | 'graduated', number>>;

export class Lists implements ReadModel {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  listChambers({ phase, before = ABOVE_ALL_IDS, limit, now }: ChamberListQuery) {
    if (phase === undefined) return this.#listings(CHAMBERS, [before, limit]);
    return this.#listings(chambersIn(phase), [before, limit, now]);
  }

  listChambersOf(did: string, { before = ABOVE_ALL_IDS, limit }: Pick<ChamberListQuery, 'before' | 'limit'>) {
    return this.#listings(CHAMBERS_OF, [did, before, limit]);
  }

  async #listings(text: string, values: readonly SqlValue[]): Promise<readonly ChamberListing[]> {
    const rows = await this.#sql.query<{ readonly listing: string }>(text, values);
    return rows.map(({ listing }) => decodeChamber(listing));
  }

  listGraduatedIdeas({ limit, after = AFTER_ALL_TIMES }: GraduatedQuery): Promise<readonly IdeaView[]> {
    return this.#ideas(GRADUATED, [after.graduatedAt, after.chamberId, after.slot, limit]);
  }

  async findIdea(ticker: string, chamberId: number | undefined): Promise<IdeaView | undefined> {
    // PostgreSQL's text can't contain U+0000.
    if (ticker.includes('\0')) return undefined;
    const lowerCase = ticker.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
    const [found] =
      chamberId === undefined
        ? await this.#ideas(IDEA, [lowerCase])
        : await this.#ideas(IDEA_OF_CHAMBER, [lowerCase, chamberId]);
    return found;
  }

  async #ideas(text: string, values: readonly SqlValue[]): Promise<readonly IdeaView[]> {
    const rows = await this.#sql.query<{ readonly view: string }>(text, values);
    return rows.map(({ view }) => decodeIdea(view));
  }

  listUnsettled(now: Millis, limit: number): Promise<readonly number[]> {
    return this.#chamberIds(UNSETTLED, [now, limit]);
  }

  listSettled(limit: number): Promise<readonly number[]> {
    return this.#chamberIds(SETTLED, [limit]);
  }

  async #chamberIds(text: string, values: readonly SqlValue[]): Promise<readonly number[]> {
    const rows = await this.#sql.query<Readonly<Record<'chamber_id', number>>>(text, values);
    return rows.map((row) => row.chamber_id);
  }

  async listMemberships(did: string, limit: number): Promise<readonly Membership[]> {
    const rows = await this.#sql.query<MembershipRow>(memberships(this.#sql.dialect), [did, limit]);
    return rows.map((row) => toMembership(did, row));
  }

  async listMembersAt(positions: readonly MemberPosition[]): Promise<readonly (string | null)[]> {
    const listed = positions.map(([chamber, turn]) => ({ chamber, turn }));
    const rows = await this.#sql.query<{ readonly did: string | null }>(membersAt(this.#sql.dialect), [
      jsonRows(POSITIONS, listed),
    ]);
    return rows.map(({ did }) => did);
  }

  async listChambersWithIdea(did: string, chamberIds: readonly number[]): Promise<readonly number[]> {
    if (chamberIds.length === 0) return [];
    const listed = chamberIds.map((chamber) => ({ chamber }));
    return await this.#chamberIds(withIdea(this.#sql.dialect), [jsonRows(CHAMBERS_LISTED, listed), did]);
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
    const text = 'SELECT operator_email FROM contacts WHERE did = $1';
    const [row] = await this.#sql.query<{ readonly operator_email: Buffer }>(text, [did]);
    return row?.operator_email.toString();
  }
}

const ABOVE_ALL_IDS = Number.MAX_SAFE_INTEGER;

/** Sorts after every timestamp. */
const AFTER_ALL_TIMES = { graduatedAt: '~', chamberId: 0, slot: 0 };
