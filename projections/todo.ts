// What an agent has to do in each of its chambers (GET /me/todo): from rows of the derived tables and the clock, without folding.
import type { Millis, Phase } from '../src/vocabulary/values.ts';
import type { ChamberListing, MemberListing } from './listings.ts';
import { isClosed, phaseBy, phaseEnd } from './phase.ts';
import { NOT_SETTLED } from './settlement.ts';
import { missedTurns, NO_TURNS, nextClockChange, type Turn, type Turns, turnAt, turnEnd, turnStart } from './turn.ts';

/** The one word that says what the chamber waits for from the agent. */
export type Must = 'pass' | 'commit' | 'reveal' | 'wait';
/** Moves that would be accepted too. */
export type May = 'join' | 'admit' | 'start' | 'propose' | 'debate' | 'amend' | 'withdraw';

/** An item of GET /me/todo. */
export interface TodoView {
  readonly chamberId: number;
  readonly name: string;
  readonly phase: Phase;
  readonly must: Must;
  readonly may: readonly May[];
  readonly turnHolder: string | null;
  readonly phaseEndsAt: string | null;
  readonly turnEndsAt: string | null;
  readonly committed: boolean;
  readonly revealed: boolean;
  readonly lastEventId: number;
  /** What the chamber waits for, in a sentence, while `must` is `wait`. */
  readonly why: string | null;
  /** How many of the agent's turns have run out. */
  readonly missedTurns: number;
}

/** A chamber that is not committed, and the agent in it. */
export interface Membership {
  readonly chamber: ChamberListing;
  readonly member: Pick<MemberListing, 'did' | 'turnOrder' | 'hasCommitted' | 'hasRevealed'>;
  /** null before the first of a turn phase's moves. */
  readonly turns: Turns | null;
  readonly lastEventId: number;
}

/** Holds until `changesAt` unless the chamber has an event. Without the DID in turn, which takes a look-up. */
export interface Todo {
  readonly membership: Membership;
  readonly phase: Phase;
  readonly must: Must;
  readonly may: readonly May[];
  readonly holderTurnOrder: number | null;
  /** When the agent's own turn began; null unless it is its turn. */
  readonly turnBeganAt: Millis | null;
  readonly phaseEndsAt: Millis | null;
  readonly turnEndsAt: Millis | null;
  /** Whether the reveal has ended, so that only the chain is awaited. */
  readonly isClosed: boolean;
  readonly missedTurns: number;
  /** Nothing of a retired key is accepted. */
  readonly isRetired: boolean;
  /** What the chamber's rules of admission say to the agent, in LOBBY. */
  readonly admission: OwnAdmission;
  /** When the clock alone changes it; Infinity if only an event can. */
  readonly changesAt: Millis;
}

/** What rules of admission say to an agent. */
export interface OwnAdmission {
  /** Why it may not join, and what would satisfy the rules; null where it may. */
  readonly problem: string | null;
  readonly mayAdmit: boolean;
}

const OPEN: OwnAdmission = { problem: null, mayAdmit: false };

export function todoOf(membership: Membership, context: TodoContext): Todo {
  const { now, membersMax, isRetired = false, admission = OPEN, hasIdea = false } = context;
  const { member } = membership;
  const { phase, state, current } = positionAt(membership, now);
  const own = current !== null && current.turnOrder === member.turnOrder ? current : null;
  return {
    membership,
    phase,
    must: isRetired ? 'wait' : mustOf(membership, { phase, turn: own, now }),
    turnBeganAt: own && turnStart(state, own),
    may: isRetired ? [] : mayOf(membership, { phase, turn: own, membersMax, admission, hasIdea }),
    holderTurnOrder: current?.turnOrder ?? null,
    phaseEndsAt: phaseEnd(state, phase),
    turnEndsAt: turnEnd(state, now, current),
    isClosed: isClosed(state, now),
    missedTurns: member.turnOrder === null ? 0 : missedTurns(state, member.turnOrder, now),
    isRetired,
    admission,
    changesAt: nextClockChange(state, now),
  };
}

/** A chamber without its members. */
export type Played = Pick<Membership, 'chamber' | 'turns'>;

function positionAt({ chamber, turns }: Played, now: Millis) {
  const phase = phaseBy(chamber.ends, false, now);
  const members = { length: chamber.memberCount };
  const state = { ...chamber, members, turns: turns ?? NO_TURNS, settlement: NOT_SETTLED, lastAt: 0 };
  return { phase, state, current: turnAt(state, now) };
}

/** Whose duties a chamber can have at `now`, until `changesAt` or its next event: one turnOrder, or null for all members. */
export function seatsDue(
  played: Played,
  now: Millis,
): { readonly seats: readonly (number | null)[]; readonly changesAt: Millis } {
  const { phase, state, current } = positionAt(played, now);
  const isForAll = phase === 'ALLOCATE_COMMIT' || phase === 'ALLOCATE_REVEAL';
  const seats = current === null ? (isForAll ? [null] : []) : [current.turnOrder];
  return { seats, changesAt: nextClockChange(state, now) };
}

interface TodoContext {
  readonly now: Millis;
  readonly membersMax: number;
  readonly isRetired?: boolean;
  /** What the rules of a chamber say of the agent, in LOBBY. */
  readonly admission?: OwnAdmission | undefined;
  /** Whether the agent has an idea in the chamber that it has not withdrawn; matters in its turn alone. */
  readonly hasIdea?: boolean;
}

interface Situation {
  readonly phase: Phase;
  /** The agent's own turn. */
  readonly turn: Turn | null;
}

function mustOf({ chamber, member }: Membership, { phase, turn, now }: Situation & { readonly now: Millis }): Must {
  const isMember = member.turnOrder !== null;
  if (turn !== null) return 'pass';
  if (phase === 'ALLOCATE_COMMIT' && isMember && !member.hasCommitted) return 'commit';
  const isRevealOpen = phase === 'ALLOCATE_REVEAL' && now < chamber.ends.allocateRevealDeadline;
  if (isRevealOpen && member.hasCommitted && !member.hasRevealed) return 'reveal';
  return 'wait';
}

function mayOf(
  { chamber, member }: Membership,
  {
    phase,
    turn,
    membersMax,
    admission,
    hasIdea,
  }: Situation & Required<Pick<TodoContext, 'membersMax' | 'hasIdea'>> & Pick<Todo, 'admission'>,
): readonly May[] {
  if (phase === 'LOBBY') {
    const { memberCount } = chamber;
    const hasSeat = memberCount < Math.min(membersMax, chamber.maxMembers ?? membersMax);
    const may: Readonly<Record<'join' | 'admit' | 'start', boolean>> = {
      join: member.turnOrder === null && hasSeat && admission.problem === null,
      admit: admission.mayAdmit,
      start: chamber.rounds !== null && chamber.creatorDid === member.did && memberCount >= (chamber.minMembers ?? 1),
    };
    return (['join', 'admit', 'start'] as const).filter((move) => may[move]);
  }
  if (turn === null || turn.moves >= (chamber.movesPerTurn ?? Number.POSITIVE_INFINITY)) return [];
  if (phase === 'PROPOSAL') return hasIdea ? ['propose', 'withdraw'] : ['propose'];
  return hasIdea ? ['debate', 'amend', 'withdraw'] : ['debate'];
}

/** What must be done before what waits, then by the next deadline, then by chamber. */
export function byUrgency(one: Todo, other: Todo): number {
  const rank = ({ must }: Todo) => (must === 'wait' ? 1 : 0);
  return (
    rank(one) - rank(other) ||
    nextDeadline(one) - nextDeadline(other) ||
    one.membership.chamber.chamberId - other.membership.chamber.chamberId
  );
}

/** When the turn or the phase ends, whichever is first. */
function nextDeadline({ turnEndsAt, phaseEndsAt }: Todo): Millis {
  return Math.min(turnEndsAt ?? Number.POSITIVE_INFINITY, phaseEndsAt ?? Number.POSITIVE_INFINITY);
}
