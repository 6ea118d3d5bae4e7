// When the phases of a chamber end: at their deadlines, in a chamber with rounds as soon as nothing is left to come, and all with LOBBY where
// too few members have joined.
import type { ChamberEvent } from '../src/vocabulary/events.ts';
import { DEADLINES, type DeadlineName, instantOf, type Millis, PHASES, type Phase } from '../src/vocabulary/values.ts';
import { type PhaseEnds, phaseAt } from './phase.ts';
import { afterPass, hasTurns, SPEECH, type TurnPhase, type TurnState, turnMillis, turnsOf } from './turn.ts';

/** The part of a chamber's state that determines when its phases end. */
export interface PaceState extends TurnState {
  /** The latest ends of the phases. */
  readonly deadlines: PhaseEnds;
  /** The events that ended a phase before its time, in a chamber with rounds. */
  readonly endedBy: Readonly<Partial<Record<DeadlineName, number>>>;
  readonly maxMembers: number | null;
  /** The chamber is over with LOBBY unless so many members have joined. */
  readonly minMembers: number | null;
  readonly commitments: { readonly size: number };
  readonly reveals: { readonly size: number };
  readonly lastEventId: number;
}

/** Whether the chamber would be over if LOBBY ended now; false where no number is asked for. */
export function lacksMembers({ members, minMembers }: Quorum): boolean {
  return minMembers !== null && members.length < minMembers;
}

/** The part of a chamber's state that says whether it comes about. */
export interface Quorum {
  readonly members: { readonly length: number };
  readonly minMembers: number | null;
}

/** The ends of a chamber without members, if none joins. */
export function endsAtCreation(deadlines: PhaseEnds, minMembers: number | null): PhaseEnds {
  return minMembers === null ? deadlines : allWithLobby(deadlines);
}

function allWithLobby({ lobbyDeadline }: PhaseEnds): PhaseEnds {
  return Object.fromEntries(DEADLINES.map((name) => [name, lobbyDeadline])) as Record<DeadlineName, Millis>;
}

/**
 * The ends of all phases after an event of `type`, if no other event came. The event belongs to the phase that it may end; the end
 * of a phase that has begun never rises.
 */
export function endsAfter(
  before: PaceState,
  after: PaceState,
  type: ChamberEvent['type'],
): Pick<PaceState, 'ends' | 'endedBy'> {
  const { endedBy } = before;
  // Speech ends no turn.
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

/** When nothing is left to come in the phase; infinite while something is. */
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

/** When the last turn of the phase ends unless a pass comes before; infinite without rounds. */
function lastTurnEnd(state: PaceState, phase: TurnPhase): Millis {
  const { members, rounds } = state;
  if (rounds === null) return Number.POSITIVE_INFINITY;
  const { count, since, silent } = turnsOf(state, phase);
  const left = (phase === 'PROPOSAL' ? rounds.proposal : rounds.debate) * members.length - count;
  return left <= 0 || silent >= members.length ? since : since + left * turnMillis(state);
}

/** Whether as many members have joined as the chamber needs; null in LOBBY, and where it needs no number. */
export function isQuorate(state: PaceState, now: Millis): boolean | null {
  if (state.minMembers === null || phaseAt(state, now) === 'LOBBY') return null;
  return !lacksMembers(state);
}

/** The phase that an event of the chamber belongs to, which it may have ended; of an event before or with `chamber.committed`. */
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

/** Who has the turn after the one at `now` is passed; where no turn follows, the next in turn order. */
export function holderAfterPass(state: PaceState, now: Millis): string {
  // The pass gets this time: the clock may be behind the last event, which another node decided.
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
 * The ends as they are known at `now`: a phase that has not begun shows its deadline, or what running turns already imply. Turns
 * run from PROPOSAL on, when it is settled who takes part; in LOBBY the members that a chamber lacks may still join.
 */
export function knownEnds(state: PaceState, now: Millis): PhaseEnds {
  const current = PHASES.indexOf(phaseAt(state, now));
  const { lobbyDeadline } = state.ends;
  if (current === PHASES.indexOf('LOBBY')) return { ...state.deadlines, lobbyDeadline };
  if (state.rounds === null || current >= PHASES.indexOf('ALLOCATE_REVEAL')) return state.ends;
  // The state's end is that of a reveal without commitments; it may have some.
  const { allocateCommitDeadline, allocateRevealDeadline } = state.deadlines;
  return allocateRevealDeadline === allocateCommitDeadline ? state.ends : { ...state.ends, allocateRevealDeadline };
}
