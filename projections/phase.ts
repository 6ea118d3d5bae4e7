// Computes the phase of a chamber: pure functions of its effective ends, its log and the clock.
import { DEADLINES, type DeadlineName, type Millis, PHASES, type Phase } from '../src/vocabulary/values.ts';
import type { Settlement } from './settlement.ts';

/** The ends of the phases, each under the name of the phase's deadline. */
export type PhaseEnds = Readonly<Record<DeadlineName, Millis>>;

/** The part of a chamber's state that determines its phase. */
export interface PhaseState {
  /** The end of each phase if no further event comes; without rounds, its deadline (see phase-ends.ts). */
  readonly ends: PhaseEnds;
  readonly settlement: Settlement;
  /** The `ts` of the last event. */
  readonly lastAt: Millis;
}

/**
 * Returns the phase at `now`. The instant at which a phase ends belongs to the next phase. After the reveal phase, the chamber stays in
 * ALLOCATE_REVEAL until `chamber.committed` is in the log. A `now` before the last event counts as the time of that event.
 */
export function phaseAt(state: PhaseState, now: Millis): Phase {
  return phaseBy(state.ends, state.settlement.committed !== null, Math.max(now, state.lastAt));
}

/** Computes the phase from the columns of a list row. */
export function phaseBy(ends: PhaseEnds, isCommitted: boolean, at: Millis): Phase {
  if (isCommitted) return 'COMMITTED';
  for (const [index, deadline] of DEADLINES.entries()) if (at < ends[deadline]) return PHASES[index] as Phase;
  return 'ALLOCATE_REVEAL';
}

/** Whether the reveal phase has ended, so that no further moves are accepted. */
export function isClosed(state: PhaseState, now: Millis): boolean {
  return Math.max(now, state.lastAt) >= state.ends.allocateRevealDeadline;
}

/** Returns the end of the phase; null for COMMITTED, which is final. */
export function phaseEnd({ ends }: Pick<PhaseState, 'ends'>, phase: Phase): Millis | null {
  const deadline = DEADLINES[PHASES.indexOf(phase)];
  return deadline === undefined ? null : ends[deadline];
}
