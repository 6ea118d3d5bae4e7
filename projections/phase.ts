// The phase of a chamber and whose turn it is: pure functions of its deadlines, its log and the clock.
import { DEADLINES, type DeadlineName, type Millis, PHASES, type Phase } from '../src/vocabulary/values.ts';
import type { Settlement } from './settlement.ts';

/** The part of a chamber's state that determines its phase. */
export interface PhaseState {
  readonly deadlines: Readonly<Record<DeadlineName, Millis>>;
  readonly settlement: Settlement;
  /** `ts` of the last event. */
  readonly lastAt: Millis;
}

/**
 * The phase at `now`. A phase ends at its deadline, whose instant belongs to the next one. After the reveal deadline it
 * stays ALLOCATE_REVEAL until `chamber.committed` is in the log. A `now` before the last event counts as that event's time.
 */
export function phaseAt(state: PhaseState, now: Millis): Phase {
  return phaseBy(state.deadlines, state.settlement.committed !== null, Math.max(now, state.lastAt));
}

/** The same from the parts that a list row holds. */
export function phaseBy(deadlines: Readonly<Record<DeadlineName, Millis>>, isCommitted: boolean, at: Millis): Phase {
  if (isCommitted) return 'COMMITTED';
  for (const [index, deadline] of DEADLINES.entries()) if (at < deadlines[deadline]) return PHASES[index] as Phase;
  return 'ALLOCATE_REVEAL';
}

/** Whether the reveal deadline has passed: no move is accepted from then on. */
export function isClosed(state: PhaseState, now: Millis): boolean {
  return Math.max(now, state.lastAt) >= state.deadlines.allocateRevealDeadline;
}

/** The deadline of the phase; null for COMMITTED, which is final. */
export function phaseEnd(state: PhaseState, phase: Phase): Millis | null {
  const deadline = DEADLINES[PHASES.indexOf(phase)];
  return deadline === undefined ? null : state.deadlines[deadline];
}

/** When the phase began: the deadline of the one before it. */
export function phaseStart(state: PhaseState, phase: Exclude<Phase, 'LOBBY'>): Millis {
  const before = DEADLINES[PHASES.indexOf(phase) - 1] as DeadlineName;
  return state.deadlines[before];
}

// Turns: join order, wrapping round, from turn 0 in each phase that has them.

export type TurnPhase = 'PROPOSAL' | 'DEBATE';

/** The turn that the last pass set; `phase` is null before the first pass. */
export interface TurnStart {
  readonly phase: TurnPhase | null;
  readonly turnOrder: number;
  readonly since: Millis;
}

/** The part of a chamber's state that determines its turns. */
export interface TurnState extends PhaseState {
  readonly chamberId: number;
  readonly turnSeconds: number | null;
  /** In turn order; the index is the turnOrder. */
  readonly members: readonly string[];
  readonly turn: TurnStart;
}

/** What turnAt reads: the number of members matters, not who they are. */
type TurnClock = Omit<TurnState, 'members'> & { readonly members: { readonly length: number } };

export const FIRST_TURN: TurnStart = { phase: null, turnOrder: 0, since: 0 };

export function hasTurns(phase: Phase): phase is TurnPhase {
  return phase === 'PROPOSAL' || phase === 'DEBATE';
}

/** The turn at `now`; null outside PROPOSAL and DEBATE, and without members. */
export function turnAt(state: TurnClock, now: Millis) {
  const phase = phaseAt(state, now);
  if (!hasTurns(phase) || state.members.length === 0) return null;
  const start = state.turn.phase === phase ? state.turn : { turnOrder: 0, since: phaseStart(state, phase) };
  const limitMillis = state.turnSeconds === null ? Number.POSITIVE_INFINITY : state.turnSeconds * 1000;
  // How many turns have expired since the last pass, or since the phase began.
  const expired = Math.floor((Math.max(now, state.lastAt) - start.since) / limitMillis);
  const turnOrder = (start.turnOrder + expired) % state.members.length;
  return { phase, turnOrder, expired, endsAt: start.since + (expired + 1) * limitMillis };
}

/** When the turn at `now` ends unless it is passed: null without a turn, and where turns have no limit. */
export function turnEnd(state: TurnClock, now: Millis, turn = turnAt(state, now)): Millis | null {
  if (turn === null || turn.endsAt === Number.POSITIVE_INFINITY) return null;
  return Math.min(turn.endsAt, phaseEnd(state, turn.phase) ?? turn.endsAt);
}

/**
 * The next instant at which the clock alone changes a chamber: its phase, its turn, or whether it takes moves. Infinity if only an
 * event can change it. Whoever waits for a change of a chamber waits for its events and for this instant.
 */
export function nextClockChange(state: TurnClock, now: Millis): Millis {
  const at = Math.max(now, state.lastAt);
  const ends = [phaseEnd(state, phaseAt(state, now)), turnAt(state, now)?.endsAt];
  return Math.min(...ends.map((end) => (end && end > at ? end : Number.POSITIVE_INFINITY)));
}

/** The DID of the member in turn at `now`, or null. */
export function turnHolderAt(state: TurnState, now: Millis): string | null {
  const turn = turnAt(state, now);
  return turn === null ? null : (state.members[turn.turnOrder] ?? null);
}

/** The turns after the member in turn has passed at `at`. */
export function afterPass(state: TurnState, at: Millis): TurnStart {
  const turn = turnAt(state, at);
  if (turn === null) throw new Error(`no turn to pass in chamber ${state.chamberId}`);
  return { phase: turn.phase, turnOrder: (turn.turnOrder + 1) % state.members.length, since: at };
}
