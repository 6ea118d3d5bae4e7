// Determines when the phases of a chamber end. By default, a phase ends at its deadline. In a chamber with rounds, it ends earlier if
// nothing more can happen in it. If too few members join, all phases end with LOBBY.
import type { ChamberEvent } from '../src/vocabulary/events.ts';
import { DEADLINES, type DeadlineName, instantOf, type Millis, PHASES, type Phase } from '../src/vocabulary/values.ts';
import { type PhaseEnds, phaseAt } from './phase.ts';
import { afterPass, hasTurns, SPEECH, type TurnPhase, type TurnState, turnMillis, turnsOf } from './turn.ts';

/** The part of a chamber's state that determines the ends of its phases. */
export interface PaceState extends TurnState {
  /** The latest ends of the phases. */
  readonly deadlines: PhaseEnds;
  /** The events that ended a phase before its deadline, in a chamber with rounds. */
  readonly endedBy: Readonly<Partial<Record<DeadlineName, number>>>;
  readonly maxMembers: number | null;
  /** If fewer members have joined when LOBBY ends, the chamber is over; null if there is no minimum. */
  readonly minMembers: number | null;
  readonly commitments: { readonly size: number };
  readonly reveals: { readonly size: number };
  readonly lastEventId: number;
}

/** Whether the chamber would be over if LOBBY ended now; false without a minimum. */
export function lacksMembers({ members, minMembers }: Quorum): boolean {
  return minMembers !== null && members.length < minMembers;
}

/** The part of a chamber's state that determines whether it has enough members. */
export interface Quorum {
  readonly members: { readonly length: number };
  readonly minMembers: number | null;
}

/** Returns the ends of a chamber that nobody joins. */
export function endsAtCreation(deadlines: PhaseEnds, minMembers: number | null): PhaseEnds {
  return minMembers === null ? deadlines : allWithLobby(deadlines);
}

function allWithLobby({ lobbyDeadline }: PhaseEnds): PhaseEnds {
  return Object.fromEntries(DEADLINES.map((name) => [name, lobbyDeadline])) as Record<DeadlineName, Millis>;
}

/**
 * Returns the ends of all phases after an event of `type`, assuming that no further event comes. The event belongs to the phase that it
 * may end. The end of a phase that has begun never becomes later.
 */
export function endsAfter(
  before: PaceState,
  after: PaceState,
  type: ChamberEvent['type'],
): Pick<PaceState, 'ends' | 'endedBy'> {
  const { endedBy } = before;
  // A comment, proposal, amendment or withdrawal ends no turn.
  if (SPEECH.has(type) || lacksMembers(after)) return { ends: before.ends, endedBy };
  const isPaced = after.rounds !== null && after.members.length > 0;
  if (!isPaced) return { ends: lacksMembers(before) ? after.deadlines : before.ends, endedBy };
  const current = PHASES.indexOf(phaseAt(before, after.lastAt));
  const ends = { ...before.ends };
  const state = { ...after, ends };
  for (const [index, name] of DEADLINES.entries()) {
    if (index < current) continue;
    const previous = DEADLINES[index - 1];
    const start = previous === undefined ? Number.NEGATIVE_INFINITY : ends[previous];
    const isEmpty = previous !== undefined && after.deadlines[name] === after.deadlines[previous];
    const end = isEmpty ? start : earlyEnd(state, PHASES[index] as Phase, { start, type });
    ends[name] = Math.min(end, index === current ? before.ends[name] : after.deadlines[name]);
  }
  const name = DEADLINES[current];
  const isEnded = name !== undefined && ends[name] < before.ends[name] && ends[name] === after.lastAt;
  return { ends, endedBy: isEnded ? { ...endedBy, [name]: after.lastEventId } : endedBy };
}

/** Returns the time from which nothing more can happen in the phase; infinite if something still can. */
function earlyEnd(
  state: PaceState,
  phase: Phase,
  { start, type }: { readonly start: Millis; readonly type: ChamberEvent['type'] },
): Millis {
  const { members, maxMembers, commitments, reveals, lastAt } = state;
  switch (phase) {
    case 'LOBBY':
      return type === 'chamber.started' || members.length === maxMembers ? lastAt : Number.POSITIVE_INFINITY;
    case 'PROPOSAL':
    case 'DEBATE':
      return lastTurnEnd(state, phase);
    case 'ALLOCATE_COMMIT':
      return commitments.size === members.length ? lastAt : Number.POSITIVE_INFINITY;
    case 'ALLOCATE_REVEAL':
      if (commitments.size === 0) return start;
      return reveals.size === commitments.size ? lastAt : Number.POSITIVE_INFINITY;
    case 'COMMITTED':
      return Number.POSITIVE_INFINITY;
  }
}

/** Returns the end of the phase's last turn if nobody passes before it; infinite without rounds. */
function lastTurnEnd(state: PaceState, phase: TurnPhase): Millis {
  const { members, rounds } = state;
  if (rounds === null) return Number.POSITIVE_INFINITY;
  const { count, since, silent } = turnsOf(state, phase);
  const left = (phase === 'PROPOSAL' ? rounds.proposal : rounds.debate) * members.length - count;
  return left <= 0 || silent >= members.length ? since : since + left * turnMillis(state);
}

/** Whether the chamber has its minimum number of members; null in LOBBY, and without a minimum. */
export function isQuorate(state: PaceState, now: Millis): boolean | null {
  if (state.minMembers === null || phaseAt(state, now) === 'LOBBY') return null;
  return !lacksMembers(state);
}

/** Returns the phase that an event belongs to, which the event may have ended. For events up to and including `chamber.committed`. */
export function phaseOf(
  { ends, endedBy }: Pick<PaceState, 'ends' | 'endedBy'>,
  { eventId, ts }: Pick<ChamberEvent, 'eventId' | 'ts'>,
): Phase {
  const at = instantOf(ts);
  for (const [index, name] of DEADLINES.entries()) {
    if (at < ends[name] || eventId <= (endedBy[name] ?? 0)) return PHASES[index] as Phase;
  }
  return 'ALLOCATE_REVEAL';
}

/** Returns the next turn holder if the turn at `now` is passed; if no further turn follows, the next member in turn order. */
export function holderAfterPass(state: PaceState, now: Millis): string {
  // The time of the pass event: the clock may be behind the last event if another node decided that event.
  const at = Math.max(now, state.lastAt);
  const turns = afterPass(state, at);
  const passed = { ...state, turns, lastAt: at };
  const isLast = turns.phase !== null && lastTurnEnd(passed, turns.phase) <= at;
  const begins = isLast && hasTurns(phaseAt({ ...passed, ...endsAfter(state, passed, 'chamber.passed') }, at));
  const next = state.members[begins ? 0 : turns.count % state.members.length];
  if (next === undefined) throw new Error(`no next turn in chamber ${state.chamberId}`);
  return next;
}

/**
 * Returns the ends as known at `now`. The end of a phase that has not begun is its deadline, or an earlier time that the current turns
 * already imply. Turns count from PROPOSAL on, when the members are fixed; in LOBBY, missing members may still join.
 */
export function knownEnds(state: PaceState, now: Millis): PhaseEnds {
  const current = PHASES.indexOf(phaseAt(state, now));
  const { lobbyDeadline } = state.ends;
  if (current === PHASES.indexOf('LOBBY')) return { ...state.deadlines, lobbyDeadline };
  if (state.rounds === null || current >= PHASES.indexOf('ALLOCATE_REVEAL')) return state.ends;
  // The state has the end of a reveal phase without commitments, but there may be commitments.
  const { allocateCommitDeadline, allocateRevealDeadline } = state.deadlines;
  return allocateRevealDeadline === allocateCommitDeadline ? state.ends : { ...state.ends, allocateRevealDeadline };
}
