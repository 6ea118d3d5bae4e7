// The phase of a chamber: a pure function of its deadlines, its log and the clock.
import { DEADLINES, type DeadlineName, type Millis, PHASES, type Phase } from '../src/vocabulary/values.ts';
import type { Settlement } from './settlement.ts';

/** The part of a chamber's state that its phase follows from. */
export interface PhaseState {
  readonly deadlines: Readonly<Record<DeadlineName, Millis>>;
  readonly settlement: Settlement;
  /** `ts` of the last event. */
  readonly lastAt: Millis;
}

/**
 * The phase at `now`. A phase ends at its deadline, whose instant belongs to the next one. After the reveal deadline it
 * stays ALLOCATE_REVEAL until `chamber.committed` is in the log. An earlier `now` than the last event's counts as that.
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

/** When the phase began: the deadline of the one before it. Meant for the phases after LOBBY. */
export function phaseStart(state: PhaseState, phase: Exclude<Phase, 'LOBBY'>): Millis {
  const before = DEADLINES[PHASES.indexOf(phase) - 1] as DeadlineName;
  return state.deadlines[before];
}
