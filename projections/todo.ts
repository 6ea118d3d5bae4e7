// Computes an agent's duties in each of its chambers (GET /me/todo) from rows of the read model and the clock, without folding.
import type { Millis, Phase } from '../src/vocabulary/values.ts';
import type { ChamberListing, MemberListing } from './listings.ts';
import { isClosed, phaseBy, phaseEnd } from './phase.ts';
import { NOT_SETTLED } from './settlement.ts';
import { missedTurns, NO_TURNS, nextClockChange, type Turn, type Turns, turnAt, turnEnd, turnStart } from './turn.ts';

/** The agent's current duty in one word. */
export const MUST = ['pass', 'commit', 'reveal', 'wait'] as const;
export type Must = (typeof MUST)[number];

/** Other moves that would be accepted. */
export const MAY = ['join', 'admit', 'start', 'propose', 'debate', 'amend', 'withdraw'] as const;
export type May = (typeof MAY)[number];

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
  /** A sentence about what the chamber waits for, while `must` is `wait`. */
  readonly why: string | null;
  /** The number of the agent's turns that have expired. */
  readonly missedTurns: number;
}

/** An uncommitted chamber, with the agent's role in it. */
export interface Membership {
  readonly chamber: ChamberListing;
  readonly member: Pick<MemberListing, 'did' | 'turnOrder' | 'hasCommitted' | 'hasRevealed'>;
  /** Null before the first move of a turn phase. */
  readonly turns: Turns | null;
  readonly lastEventId: number;
}

/** Valid until `changesAt` unless the chamber gets an event. Lacks the DID of the turn holder, because finding it takes a lookup. */
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
  /** Whether the reveal phase has ended, so that the chamber waits only for the chain. */
  readonly isClosed: boolean;
  readonly missedTurns: number;
  /** Whether the agent's key is retired, so that nothing signed with it is accepted. */
  readonly isRetired: boolean;
  /** The result of the admission rules for the agent, in LOBBY. */
  readonly admission: OwnAdmission;
  /** When the item changes without an event; Infinity if only an event can change it. */
  readonly changesAt: Millis;
}

export interface OwnAdmission {
  /** Why the agent may not join, and how to satisfy the rules; null if it may join. */
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

/** A chamber's row and the state of its turns, without a member. */
export type ChamberTurns = Pick<Membership, 'chamber' | 'turns'>;

function positionAt({ chamber, turns }: ChamberTurns, now: Millis) {
  const phase = phaseBy(chamber.ends, false, now);
  const members = { length: chamber.memberCount };
  const state = { ...chamber, members, turns: turns ?? NO_TURNS, settlement: NOT_SETTLED, lastAt: 0 };
  return { phase, state, current: turnAt(state, now) };
}

/** Returns the members that can have duties between `now` and `changesAt` or the next event: one turnOrder, or null for all members. */
export function seatsDue(
  chamberTurns: ChamberTurns,
  now: Millis,
): { readonly seats: readonly (number | null)[]; readonly changesAt: Millis } {
  const { phase, state, current } = positionAt(chamberTurns, now);
  const isForAll = phase === 'ALLOCATE_COMMIT' || phase === 'ALLOCATE_REVEAL';
  const seats = current === null ? (isForAll ? [null] : []) : [current.turnOrder];
  return { seats, changesAt: nextClockChange(state, now) };
}

export interface Duty {
  readonly must: Exclude<Must, 'wait'>;
  readonly turnBeganAt: Millis | null;
}

/** Returns null while the chamber waits for others. */
export function dutyOf(membership: ChamberTurns & Pick<Membership, 'member'>, now: Millis): Duty | null {
  const { phase, state, current } = positionAt(membership, now);
  const turn = current !== null && current.turnOrder === membership.member.turnOrder ? current : null;
  const must = mustOf(membership, { phase, turn, now });
  return must === 'wait' ? null : { must, turnBeganAt: turn && turnStart(state, turn) };
}

interface TodoContext {
  readonly now: Millis;
  readonly membersMax: number;
  readonly isRetired?: boolean;
  readonly admission?: OwnAdmission | undefined;
  /** Whether the agent has an idea in the chamber that is not withdrawn. Matters only in the agent's turn. */
  readonly hasIdea?: boolean;
}

interface TurnContext {
  readonly phase: Phase;
  /** The agent's own turn. */
  readonly turn: Turn | null;
}

function mustOf(
  { chamber, member }: Omit<Membership, 'lastEventId'>,
  { phase, turn, now }: TurnContext & { readonly now: Millis },
): Must {
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
  }: TurnContext & Required<Pick<TodoContext, 'membersMax' | 'hasIdea'>> & Pick<Todo, 'admission'>,
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

/** Sorts items with a duty first, then items with an earlier deadline, then lower chamber ids. */
export function byUrgency(one: Todo, other: Todo): number {
  const rank = ({ must }: Todo) => (must === 'wait' ? 1 : 0);
  return (
    rank(one) - rank(other) ||
    nextDeadline(one) - nextDeadline(other) ||
    one.membership.chamber.chamberId - other.membership.chamber.chamberId
  );
}

/** Returns the end of the turn or of the phase, whichever is earlier. */
export function nextDeadline({ turnEndsAt, phaseEndsAt }: Todo): Millis {
  return Math.min(turnEndsAt ?? Number.POSITIVE_INFINITY, phaseEndsAt ?? Number.POSITIVE_INFINITY);
}
