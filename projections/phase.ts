// The phase of a chamber: pure functions of its effective ends, its log and the clock.
import { DEADLINES, type DeadlineName, type Millis, PHASES, type Phase } from '../src/vocabulary/values.ts';
import type { Settlement } from './settlement.ts';

/** The ends of the phases, each by the name of the deadline that is its latest end. */
export type PhaseEnds = Readonly<Record<DeadlineName, Millis>>;

/** The part of a chamber's state that determines its phase. */
export interface PhaseState {
  /** When each phase ends if no further event comes: without rounds, at its deadline (see phase-ends.ts). */
  readonly ends: PhaseEnds;
  readonly settlement: Settlement;
  /** `ts` of the last event. */
  readonly lastAt: Millis;
}

/**
 * The phase at `now`. The instant at which a phase ends belongs to the next one. After the end of the reveal it stays
 * ALLOCATE_REVEAL until `chamber.committed` is in the log. A `now` before the last event counts as that event's time.
 */
export function phaseAt(state: PhaseState, now: Millis): Phase {
  return phaseBy(state.ends, state.settlement.committed !== null, Math.max(now, state.lastAt));
}

/** The same from the parts that a list row holds. */
export function phaseBy(ends: PhaseEnds, isCommitted: boolean, at: Millis): Phase {
  if (isCommitted) return 'COMMITTED';
  for (const [index, deadline] of DEADLINES.entries()) if (at < ends[deadline]) return PHASES[index] as Phase;
  return 'ALLOCATE_REVEAL';
}

/** Whether the reveal has ended: no move is accepted from then on. */
export function isClosed(state: PhaseState, now: Millis): boolean {
  return Math.max(now, state.lastAt) >= state.ends.allocateRevealDeadline;
}

/** When the phase ends; null for COMMITTED, which is final. */
export function phaseEnd({ ends }: Pick<PhaseState, 'ends'>, phase: Phase): Millis | null {
  const deadline = DEADLINES[PHASES.indexOf(phase)];
  return deadline === undefined ? null : ends[deadline];
}
