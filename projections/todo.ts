// What an agent has to do in each of its chambers (GET /me/todo): from rows of the derived tables and the clock, without folding.
import { type Millis, type Phase, toTimestamp } from '../src/vocabulary/values.ts';
import type { ChamberListing, MemberListing } from './listings.ts';
import { FIRST_TURN, nextClockChange, phaseBy, phaseEnd, type TurnStart, turnAt, turnEnd } from './phase.ts';
import { NOT_SETTLED } from './settlement.ts';

/** The one word that says what the chamber waits for from the agent. */
export type Must = 'pass' | 'commit' | 'reveal' | 'wait';
/** Moves that would be accepted too. */
export type May = 'join' | 'propose' | 'debate';

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
}

/** A chamber that is not committed, and the agent in it. */
export interface Membership {
  readonly chamber: Pick<
    ChamberListing,
    'chamberId' | 'name' | 'deadlines' | 'memberCount' | 'turnSeconds' | 'maxMembers'
  >;
  readonly member: Pick<MemberListing, 'turnOrder' | 'hasCommitted' | 'hasRevealed'>;
  /** null before the first pass. */
  readonly turn: TurnStart | null;
  readonly lastEventId: number;
}

/** Holds until `changesAt` unless the chamber has an event. Without the DID in turn, which takes a look-up. */
export interface Todo {
  readonly membership: Membership;
  readonly phase: Phase;
  readonly must: Must;
  readonly may: readonly May[];
  readonly holderTurnOrder: number | null;
  readonly phaseEndsAt: Millis | null;
  readonly turnEndsAt: Millis | null;
  /** When the clock alone changes it; Infinity if only an event can. */
  readonly changesAt: Millis;
}

export function todoOf(
  membership: Membership,
  { now, membersMax }: { readonly now: Millis; readonly membersMax: number },
): Todo {
  const { chamber, member, turn } = membership;
  const { deadlines, memberCount } = chamber;
  const phase = phaseBy(deadlines, false, now);
  const state = {
    chamberId: chamber.chamberId,
    deadlines,
    settlement: NOT_SETTLED,
    lastAt: 0,
    turnSeconds: chamber.turnSeconds,
    members: { length: memberCount },
    turn: turn ?? FIRST_TURN,
  };
  const current = turnAt(state, now);
  const isInTurn = current !== null && current.turnOrder === member.turnOrder;
  return {
    membership,
    phase,
    must: mustOf(membership, { phase, isInTurn, now }),
    may: mayOf(membership, { phase, isInTurn, membersMax }),
    holderTurnOrder: current?.turnOrder ?? null,
    phaseEndsAt: phaseEnd(state, phase),
    turnEndsAt: turnEnd(state, now, current),
    changesAt: nextClockChange(state, now),
  };
}

interface Situation {
  readonly phase: Phase;
  readonly isInTurn: boolean;
}

function mustOf({ chamber, member }: Membership, { phase, isInTurn, now }: Situation & { readonly now: Millis }): Must {
  const isMember = member.turnOrder !== null;
  if (isInTurn) return 'pass';
  if (phase === 'ALLOCATE_COMMIT' && isMember && !member.hasCommitted) return 'commit';
  const isRevealOpen = phase === 'ALLOCATE_REVEAL' && now < chamber.deadlines.allocateRevealDeadline;
  if (isRevealOpen && member.hasCommitted && !member.hasRevealed) return 'reveal';
  return 'wait';
}

function mayOf(
  { chamber, member }: Membership,
  { phase, isInTurn, membersMax }: Situation & { readonly membersMax: number },
): readonly May[] {
  if (
    phase === 'LOBBY' &&
    member.turnOrder === null &&
    chamber.memberCount < Math.min(membersMax, chamber.maxMembers ?? membersMax)
  )
    return ['join'];
  if (!isInTurn) return [];
  return phase === 'PROPOSAL' ? ['propose'] : ['debate'];
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

export function todoView(todo: Todo, turnHolder: string | null): TodoView {
  const { membership, phase, must, may, phaseEndsAt, turnEndsAt } = todo;
  const { chamber, member, lastEventId } = membership;
  return {
    chamberId: chamber.chamberId,
    name: chamber.name,
    phase,
    must,
    may,
    turnHolder,
    phaseEndsAt: phaseEndsAt === null ? null : toTimestamp(phaseEndsAt),
    turnEndsAt: turnEndsAt === null ? null : toTimestamp(turnEndsAt),
    committed: member.hasCommitted,
    revealed: member.hasRevealed,
    lastEventId,
  };
}
