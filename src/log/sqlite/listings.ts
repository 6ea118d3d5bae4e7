// The derived tables behind lists and look-ups, and the contacts: personal data, which no line holds.
import type { Database, Statement } from 'better-sqlite3';
import type { ChamberListing, Listing } from '../../../projections/listings.ts';
import type { IdeaView } from '../../../projections/views.ts';
import type { Millis, Phase } from '../../vocabulary/values.ts';
import type { ChamberListQuery } from '../log.ts';

/** projections/phase.ts in SQL. */
const PHASE_CONDITIONS: Readonly<Record<Phase, string>> = {
  LOBBY: 'is_committed = 0 AND @now < lobby_deadline',
  PROPOSAL: 'is_committed = 0 AND lobby_deadline <= @now AND @now < proposal_deadline',
  DEBATE: 'is_committed = 0 AND proposal_deadline <= @now AND @now < debate_deadline',
  ALLOCATE_COMMIT: 'is_committed = 0 AND debate_deadline <= @now AND @now < allocate_commit_deadline',
  ALLOCATE_REVEAL: 'is_committed = 0 AND allocate_commit_deadline <= @now',
  COMMITTED: 'is_committed = 1',
};

type ChamberRow = ReturnType<typeof toRow>;

export class Listings {
  readonly #db: Database;
  readonly #writeChamber: Statement<[ChamberRow]>;
  readonly #writeIdea: Statement;
  readonly #writeContact: Statement<[string, string]>;

  constructor(db: Database) {
    this.#db = db;
    this.#writeChamber = db.prepare(
      `INSERT OR REPLACE INTO chambers VALUES (@chamber_id, @name, @creator_did, @lobby_deadline, @proposal_deadline,
       @debate_deadline, @allocate_commit_deadline, @allocate_reveal_deadline, @member_count, @is_committed, @is_settled)`,
    );
    this.#writeIdea = db.prepare('INSERT OR REPLACE INTO ideas VALUES (?, ?, ?, ?, ?, ?)');
    this.#writeContact = db.prepare('INSERT OR REPLACE INTO contacts VALUES (?, ?)');
  }

  write(listing: Listing): void {
    if (listing.table === 'chambers') {
      this.#writeChamber.run(toRow(listing));
      return;
    }
    const { idea, proposedAt } = listing;
    const view = JSON.stringify(idea);
    this.#writeIdea.run(idea.chamberId, idea.slot, idea.ticker, proposedAt, idea.graduatedAt, view);
  }

  writeContact(did: string, operatorEmail: string): void {
    this.#writeContact.run(did, operatorEmail);
  }

  operatorEmail(did: string): string | undefined {
    const query = this.#db.prepare<[string], string>('SELECT operator_email FROM contacts WHERE did = ?');
    return query.pluck().get(did);
  }

  chambers({ phase, before, limit, now }: ChamberListQuery): readonly ChamberListing[] {
    const conditions = [
      ...(phase === undefined ? [] : [PHASE_CONDITIONS[phase]]),
      ...(before === undefined ? [] : ['chamber_id < @before']),
    ];
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
    const query = this.#db.prepare(`SELECT * FROM chambers ${where} ORDER BY chamber_id DESC LIMIT @limit`);
    const rows = query.all({ now, before: before ?? null, limit }) as readonly ChamberRow[];
    return rows.map(fromRow);
  }

  graduatedIdeas(limit: number): readonly IdeaView[] {
    const query = this.#db.prepare<[number], string>(
      `SELECT view FROM ideas WHERE graduated_at IS NOT NULL
       ORDER BY graduated_at DESC, chamber_id DESC, slot DESC LIMIT ?`,
    );
    return query.pluck().all(limit).map(parseIdea);
  }

  idea(ticker: string, chamberId: number | undefined): IdeaView | undefined {
    const query = this.#db.prepare<[{ ticker: string; chamberId: number | null }], string>(
      `SELECT view FROM ideas WHERE ticker = @ticker AND (@chamberId IS NULL OR chamber_id = @chamberId)
       ORDER BY graduated_at DESC, proposed_at DESC, chamber_id DESC LIMIT 1`,
    );
    const view = query.pluck().get({ ticker, chamberId: chamberId ?? null });
    return view === undefined ? undefined : parseIdea(view);
  }

  unsettled(now: Millis, limit: number): readonly number[] {
    const query = this.#db.prepare<[Millis, number], number>(
      `SELECT chamber_id FROM chambers WHERE is_settled = 0 AND allocate_reveal_deadline <= ?
       ORDER BY allocate_reveal_deadline, chamber_id LIMIT ?`,
    );
    return query.pluck().all(now, limit);
  }

  settled(limit: number): readonly number[] {
    const query = this.#db.prepare<[number], number>(
      'SELECT chamber_id FROM chambers WHERE is_settled = 1 ORDER BY allocate_reveal_deadline DESC LIMIT ?',
    );
    return query.pluck().all(limit);
  }

  openChambers(creatorDid: string): number {
    const query = this.#db.prepare<[string], number>(
      'SELECT count(*) FROM chambers WHERE creator_did = ? AND is_committed = 0',
    );
    return query.pluck().get(creatorDid) ?? 0;
  }
}

function toRow(listing: ChamberListing) {
  return {
    chamber_id: listing.chamberId,
    name: listing.name,
    creator_did: listing.creatorDid,
    lobby_deadline: listing.deadlines.lobbyDeadline,
    proposal_deadline: listing.deadlines.proposalDeadline,
    debate_deadline: listing.deadlines.debateDeadline,
    allocate_commit_deadline: listing.deadlines.allocateCommitDeadline,
    allocate_reveal_deadline: listing.deadlines.allocateRevealDeadline,
    member_count: listing.memberCount,
    is_committed: Number(listing.isCommitted),
    is_settled: Number(listing.isSettled),
  };
}

function fromRow(row: ChamberRow): ChamberListing {
  return {
    table: 'chambers',
    chamberId: row.chamber_id,
    name: row.name,
    creatorDid: row.creator_did,
    deadlines: {
      lobbyDeadline: row.lobby_deadline,
      proposalDeadline: row.proposal_deadline,
      debateDeadline: row.debate_deadline,
      allocateCommitDeadline: row.allocate_commit_deadline,
      allocateRevealDeadline: row.allocate_reveal_deadline,
    },
    memberCount: row.member_count,
    isCommitted: row.is_committed === 1,
    isSettled: row.is_settled === 1,
  };
}

function parseIdea(view: string): IdeaView {
  return JSON.parse(view) as IdeaView;
}
