// The read model's queries, each by an index.
import type { Database } from 'better-sqlite3';
import type { ChamberListing } from '../../../projections/listings.ts';
import type { Membership } from '../../../projections/todo.ts';
import type { AgentRecord, IdeaView } from '../../../projections/views.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { ChamberListQuery, GraduatedQuery, ReadModel, Seat } from '../read-model.ts';
import type { Access } from './access.ts';
import { ChamberPhases } from './chamber-phases.ts';
import { type ChamberRow, fromRow } from './listings.ts';
import type { Memberships } from './memberships.ts';

export class SqliteLists implements ReadModel {
  readonly #access: Access;
  readonly #memberships: Memberships;
  readonly #statements: Statements;
  readonly #phases: ChamberPhases<ChamberRow>;

  constructor(access: Access, memberships: Memberships) {
    this.#access = access;
    this.#memberships = memberships;
    this.#statements = prepare(access.file.db);
    this.#phases = new ChamberPhases(access.file.db);
  }

  listChambers({
    phase,
    before = Number.MAX_SAFE_INTEGER,
    limit,
    now,
  }: ChamberListQuery): Promise<readonly ChamberListing[]> {
    return this.#access.read(() => {
      const rows =
        phase === undefined
          ? this.#statements.chambers.all(before, limit)
          : this.#phases.list({ phase, before, limit, now });
      return rows.map(fromRow);
    });
  }

  listGraduatedIdeas({ limit, after = AFTER_ALL_TIMES }: GraduatedQuery): Promise<readonly IdeaView[]> {
    const { graduatedAt, chamberId, slot } = after;
    return this.#access.read(() =>
      this.#statements.graduatedIdeas.all(graduatedAt, chamberId, slot, limit).map(parseIdea),
    );
  }

  findIdea(ticker: string, chamberId: number | undefined): Promise<IdeaView | undefined> {
    const { ideaByTicker, ideaOfChamber } = this.#statements;
    return this.#access.read(() => {
      const view = chamberId === undefined ? ideaByTicker.get(ticker) : ideaOfChamber.get(chamberId, ticker);
      return view === undefined ? undefined : parseIdea(view);
    });
  }

  listUnsettled(now: Millis, limit: number): Promise<readonly number[]> {
    return this.#access.read(() => this.#statements.unsettled.all(now, limit));
  }

  listSettled(limit: number): Promise<readonly number[]> {
    return this.#access.read(() => this.#statements.settled.all(limit));
  }

  listMemberships(did: string, limit: number): Promise<readonly Membership[]> {
    return this.#access.read(() => this.#memberships.list(did, limit));
  }

  listChambersOf(
    did: string,
    { before = Number.MAX_SAFE_INTEGER, limit }: Pick<ChamberListQuery, 'before' | 'limit'>,
  ): Promise<readonly ChamberListing[]> {
    return this.#access.read(() => this.#statements.chambersOf.all(did, before, limit).map(fromRow));
  }

  listMembersAt(seats: readonly Seat[]): Promise<readonly (string | null)[]> {
    const memberAt = ([chamberId, turnOrder]: Seat) =>
      (turnOrder === null ? undefined : this.#memberships.memberAt(chamberId, turnOrder)) ?? null;
    return this.#access.read(() => seats.map(memberAt));
  }

  agentRecord(did: string): Promise<AgentRecord> {
    return this.#access.read(() => {
      const { chambers, newest, proposed, graduated } = this.#statements.record.get({ did }) as AgentRecordRow;
      return { chambers: { count: chambers, newest }, proposed, graduated };
    });
  }

  countOpenChambers(creatorDid: string, max: number): Promise<number> {
    return this.#access.read(() => this.#statements.openChambers.get(creatorDid, max) ?? 0);
  }

  operatorEmail(did: string): Promise<string | undefined> {
    return this.#access.read(() => this.#statements.operatorEmail.get(did));
  }
}

/** Sorts after every timestamp. */
const AFTER_ALL_TIMES = { graduatedAt: '~', chamberId: 0, slot: 0 };

interface AgentRecordRow {
  readonly chambers: number;
  readonly newest: number | null;
  readonly proposed: number;
  readonly graduated: number;
}

type Statements = ReturnType<typeof prepare>;

/** Each reads as many rows as it returns, by an index; conditions that always hold (`> ''`) make SQLite search instead of scan. */
function prepare(db: Database) {
  return {
    chambersOf: db.prepare<[string, number, number], ChamberRow>(
      `SELECT chambers.* FROM members CROSS JOIN chambers USING (chamber_id)
       WHERE did = ? AND members.chamber_id < ? AND turn_order IS NOT NULL ORDER BY members.chamber_id DESC LIMIT ?`,
    ),
    record: db.prepare<[{ did: string }], AgentRecordRow>(
      `SELECT (SELECT count(*) FROM members WHERE did = @did AND turn_order IS NOT NULL) AS chambers,
         (SELECT max(chamber_id) FROM members WHERE did = @did AND turn_order IS NOT NULL) AS newest,
         (SELECT count(*) FROM ideas WHERE creator_did = @did) AS proposed,
         (SELECT count(*) FROM ideas WHERE creator_did = @did AND graduated_at > '') AS graduated`,
    ),
    operatorEmail: db.prepare<[string], string>('SELECT operator_email FROM contacts WHERE did = ?').pluck(),
    chambers: db.prepare<[number, number], ChamberRow>(
      'SELECT * FROM chambers WHERE chamber_id < ? ORDER BY chamber_id DESC LIMIT ?',
    ),
    graduatedIdeas: db
      .prepare<[string | null, number, number, number], string>(
        `SELECT view FROM ideas WHERE graduated_at > '' AND (graduated_at, chamber_id, slot) < (?, ?, ?)
         ORDER BY graduated_at DESC, chamber_id DESC, slot DESC LIMIT ?`,
      )
      .pluck(),
    ideaByTicker: db
      .prepare<[string], string>(
        `SELECT view FROM ideas WHERE ticker = ?
         ORDER BY graduated_at DESC, proposed_at DESC, chamber_id DESC LIMIT 1`,
      )
      .pluck(),
    ideaOfChamber: db
      .prepare<[number, string], string>(
        `SELECT view FROM ideas WHERE chamber_id = ? AND ticker = ?
         ORDER BY graduated_at DESC, proposed_at DESC LIMIT 1`,
      )
      .pluck(),
    unsettled: db
      .prepare<[Millis, number], number>(
        `SELECT chamber_id FROM chambers WHERE is_settled = 0 AND allocate_reveal_deadline <= ?
         ORDER BY allocate_reveal_deadline, chamber_id LIMIT ?`,
      )
      .pluck(),
    settled: db
      .prepare<[number], number>(
        `SELECT chamber_id FROM chambers WHERE is_settled = 1 AND allocate_reveal_deadline > 0
         ORDER BY allocate_reveal_deadline DESC LIMIT ?`,
      )
      .pluck(),
    openChambers: db
      .prepare<[string, number], number>(
        'SELECT count(*) FROM (SELECT 1 FROM chambers WHERE creator_did = ? AND is_committed = 0 LIMIT ?)',
      )
      .pluck(),
  };
}

function parseIdea(view: string): IdeaView {
  return JSON.parse(view) as IdeaView;
}
