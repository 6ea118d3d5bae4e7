// The derived tables behind lists and look-ups; the contacts and what is remembered of registrations, which no line holds.
import type { Database } from 'better-sqlite3';
import type { ChamberListing, Listing } from '../../../projections/listings.ts';
import type { AgentRecord, IdeaView } from '../../../projections/views.ts';
import { unreachable } from '../../vocabulary/unreachable.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { ChamberListQuery, GraduatedQuery, Registration } from '../log.ts';
import { ChamberPhases } from './chamber-phases.ts';

export type ChamberRow = ReturnType<typeof toRow>;

export class Listings {
  readonly #statements: Statements;
  readonly #phases: ChamberPhases<ChamberRow>;

  constructor(db: Database) {
    this.#statements = prepare(db);
    this.#phases = new ChamberPhases(db);
  }

  /** A row of an event at `at`. */
  write(listing: Listing, at: Millis): void {
    switch (listing.table) {
      case 'chambers':
        this.#statements.writeChamber.run(toRow(listing));
        this.#phases.write(listing, at);
        if (listing.isCommitted) this.#statements.closeMembers.run(listing.chamberId);
        return;
      case 'ideas': {
        const { idea, proposedAt } = listing;
        const { chamberId, slot, ticker, creatorDid, graduatedAt } = idea;
        const view = JSON.stringify(idea);
        this.#statements.writeIdea.run(chamberId, slot, ticker, creatorDid, proposedAt, graduatedAt, view);
        return;
      }
      case 'members': {
        const { did, chamberId, turnOrder, hasCommitted, hasRevealed } = listing;
        this.#statements.writeMember.run(did, chamberId, turnOrder, Number(hasCommitted), Number(hasRevealed));
        return;
      }
      case 'turns': {
        const { phase, turnOrder, since } = listing.turn;
        this.#statements.writeTurn.run(listing.chamberId, phase, turnOrder, since);
        return;
      }
      default:
        unreachable(listing);
    }
  }

  /** Moves at most so many chambers on to their phase at `now`, and returns how many. */
  advancePhases(now: Millis, limit: number): number {
    return this.#phases.advance(now, limit);
  }

  writeRegistration({ did, eventId, signature, operatorEmail }: Registration): void {
    if (operatorEmail !== undefined) this.#statements.writeContact.run(did, operatorEmail);
    if (signature === null) return;
    this.#statements.writeRegistration.run(
      Buffer.from(signature, 'latin1'),
      did,
      eventId,
      Number(operatorEmail !== undefined),
    );
  }

  /** The account and the event that a registration with this hiddenSignatureKey led to. */
  registration(signature: string): RegistrationRow | undefined {
    return this.#statements.registration.get(Buffer.from(signature, 'latin1'));
  }

  operatorEmail(did: string): string | undefined {
    return this.#statements.operatorEmail.get(did);
  }

  chambers({ phase, before = Number.MAX_SAFE_INTEGER, limit, now }: ChamberListQuery): readonly ChamberListing[] {
    const rows =
      phase === undefined
        ? this.#statements.chambers.all(before, limit)
        : this.#phases.list({ phase, before, limit, now });
    return rows.map(fromRow);
  }

  /** In a database without concurrent writes. */
  *allChambers(): Generator<ChamberListing> {
    let before: number | undefined;
    for (;;) {
      const page = this.chambers({ phase: undefined, before, limit: 1_000, now: 0 });
      yield* page;
      before = page.at(-1)?.chamberId;
      if (before === undefined) return;
    }
  }

  graduatedIdeas({ limit, after }: GraduatedQuery): readonly IdeaView[] {
    const { graduatedAt, chamberId, slot } = after ?? AFTER_ALL_TIMES;
    return this.#statements.graduatedIdeas.all(graduatedAt, chamberId, slot, limit).map(parseIdea);
  }

  idea(ticker: string, chamberId: number | undefined): IdeaView | undefined {
    const { ideaByTicker, ideaOfChamber } = this.#statements;
    const view = chamberId === undefined ? ideaByTicker.get(ticker) : ideaOfChamber.get(chamberId, ticker);
    return view === undefined ? undefined : parseIdea(view);
  }

  unsettled(now: Millis, limit: number): readonly number[] {
    return this.#statements.unsettled.all(now, limit);
  }

  settled(limit: number): readonly number[] {
    return this.#statements.settled.all(limit);
  }

  /** Newest first. */
  chambersOf(did: string, { before = Number.MAX_SAFE_INTEGER, limit }: Pick<ChamberListQuery, 'before' | 'limit'>) {
    return this.#statements.chambersOf.all(did, before, limit).map(fromRow);
  }

  record(did: string): AgentRecord {
    const { chambers, newest, proposed, graduated } = this.#statements.record.get({ did }) as AgentRecordRow;
    return { chambers: { count: chambers, newest }, proposed, graduated };
  }

  openChambers(creatorDid: string, max: number): number {
    return this.#statements.openChambers.get(creatorDid, max) ?? 0;
  }
}

/** Sorts after every timestamp. */
const AFTER_ALL_TIMES = { graduatedAt: '~', chamberId: 0, slot: 0 };

interface RegistrationRow {
  readonly did: string;
  readonly event_id: number;
}

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
    writeChamber: db.prepare<[ChamberRow]>(
      `INSERT OR REPLACE INTO chambers VALUES (@chamber_id, @name, @creator_did, @lobby_deadline, @proposal_deadline,
       @debate_deadline, @allocate_commit_deadline, @allocate_reveal_deadline, @member_count, @turn_seconds, @max_members, @is_committed, @is_settled)`,
    ),
    writeIdea: db.prepare('INSERT OR REPLACE INTO ideas VALUES (?, ?, ?, ?, ?, ?, ?)'),
    writeMember: db.prepare('INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?, 1)'),
    closeMembers: db.prepare<[number]>('UPDATE members SET is_open = 0 WHERE chamber_id = ? AND is_open = 1'),
    writeTurn: db.prepare('INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?)'),
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
    writeContact: db.prepare<[string, string]>('INSERT OR REPLACE INTO contacts VALUES (?, ?)'),
    writeRegistration: db.prepare<[Buffer, string, number, number]>('INSERT INTO registrations VALUES (?, ?, ?, ?)'),
    registration: db.prepare<[Buffer], RegistrationRow>(
      'SELECT did, event_id FROM registrations WHERE signature_hash = ?',
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
    turn_seconds: listing.turnSeconds,
    max_members: listing.maxMembers,
    is_committed: Number(listing.isCommitted),
    is_settled: Number(listing.isSettled),
  };
}

export function fromRow(row: ChamberRow): ChamberListing {
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
    turnSeconds: row.turn_seconds,
    maxMembers: row.max_members,
    isCommitted: row.is_committed === 1,
    isSettled: row.is_settled === 1,
  };
}

function parseIdea(view: string): IdeaView {
  return JSON.parse(view) as IdeaView;
}
