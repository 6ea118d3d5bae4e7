// Writes the rows of the derived tables; and the contacts and what is remembered of registrations, which no line holds.
import type { Database } from 'better-sqlite3';
import type { ChamberListing, Listing } from '../../../projections/listings.ts';
import { unreachable } from '../../vocabulary/unreachable.ts';
import type { Millis } from '../../vocabulary/values.ts';
import type { Registration } from '../log.ts';
import { isPaced, isPlain } from '../pace-rows.ts';
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
        const { phase, count, since, ...pace } = listing.turns;
        const rest = isPlain(listing.turns) ? null : JSON.stringify(pace);
        this.#statements.writeTurn.run(listing.chamberId, phase, count, since, rest);
        return;
      }
      default:
        unreachable(listing);
    }
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
}

interface RegistrationRow {
  readonly did: string;
  readonly event_id: number;
}

type Statements = ReturnType<typeof prepare>;

function prepare(db: Database) {
  return {
    writeChamber: db.prepare<[ChamberRow]>(
      `INSERT OR REPLACE INTO chambers VALUES (@chamber_id, @name, @creator_did, @lobby_deadline, @proposal_deadline,
       @debate_deadline, @allocate_commit_deadline, @allocate_reveal_deadline, @member_count, @turn_seconds, @max_members, @is_committed, @is_settled, @pace)`,
    ),
    writeIdea: db.prepare('INSERT OR REPLACE INTO ideas VALUES (?, ?, ?, ?, ?, ?, ?)'),
    writeMember: db.prepare('INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?, 1)'),
    closeMembers: db.prepare<[number]>('UPDATE members SET is_open = 0 WHERE chamber_id = ? AND is_open = 1'),
    writeTurn: db.prepare('INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?, ?)'),
    writeContact: db.prepare<[string, string]>('INSERT OR REPLACE INTO contacts VALUES (?, ?)'),
    writeRegistration: db.prepare<[Buffer, string, number, number]>('INSERT INTO registrations VALUES (?, ?, ?, ?)'),
    registration: db.prepare<[Buffer], RegistrationRow>(
      'SELECT did, event_id FROM registrations WHERE signature_hash = ?',
    ),
  };
}

function toRow(listing: ChamberListing) {
  const { ends, deadlines, rounds, movesPerTurn } = listing;
  return {
    chamber_id: listing.chamberId,
    name: listing.name,
    creator_did: listing.creatorDid,
    lobby_deadline: ends.lobbyDeadline,
    proposal_deadline: ends.proposalDeadline,
    debate_deadline: ends.debateDeadline,
    allocate_commit_deadline: ends.allocateCommitDeadline,
    allocate_reveal_deadline: ends.allocateRevealDeadline,
    member_count: listing.memberCount,
    turn_seconds: listing.turnSeconds,
    max_members: listing.maxMembers,
    is_committed: Number(listing.isCommitted),
    is_settled: Number(listing.isSettled),
    pace: isPaced(listing) ? JSON.stringify({ deadlines, rounds, movesPerTurn }) : null,
  };
}

export function fromRow(row: ChamberRow): ChamberListing {
  const ends = {
    lobbyDeadline: row.lobby_deadline,
    proposalDeadline: row.proposal_deadline,
    debateDeadline: row.debate_deadline,
    allocateCommitDeadline: row.allocate_commit_deadline,
    allocateRevealDeadline: row.allocate_reveal_deadline,
  };
  const pace =
    row.pace === null
      ? { deadlines: ends, rounds: null, movesPerTurn: null }
      : (JSON.parse(row.pace) as Pick<ChamberListing, 'deadlines' | 'rounds' | 'movesPerTurn'>);
  return {
    table: 'chambers',
    chamberId: row.chamber_id,
    name: row.name,
    creatorDid: row.creator_did,
    ...pace,
    ends,
    memberCount: row.member_count,
    turnSeconds: row.turn_seconds,
    maxMembers: row.max_members,
    isCommitted: row.is_committed === 1,
    isSettled: row.is_settled === 1,
  };
}
