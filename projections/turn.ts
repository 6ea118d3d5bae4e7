// Whose turn it is: join order, wrapping round, from turn 0 in each phase; with turnSeconds also a function of the clock.
import type { Millis, Phase } from '../src/vocabulary/values.ts';
import { type PhaseState, phaseAt, phaseStart } from './phase.ts';

export type TurnPhase = 'PROPOSAL' | 'DEBATE';

/** Where the turns were set last by a pass; null before the first pass. */
export interface TurnStart {
  readonly phase: TurnPhase | null;
  readonly turnOrder: number;
  readonly since: Millis;
}

/** The part of a chamber's state that its turns follow from. */
export interface TurnState extends PhaseState {
  readonly chamberId: number;
  readonly turnSeconds: number | null;
  /** In turn order; the index is the turnOrder. */
  readonly members: readonly string[];
  readonly turn: TurnStart;
}

export const FIRST_TURN: TurnStart = { phase: null, turnOrder: 0, since: 0 };

export function hasTurns(phase: Phase): phase is TurnPhase {
  return phase === 'PROPOSAL' || phase === 'DEBATE';
}

/** The turnOrder of the member in turn at `now`; null outside PROPOSAL and DEBATE, and without members. */
export function turnOrderAt(state: TurnState, now: Millis): number | null {
  const phase = phaseAt(state, now);
  if (!hasTurns(phase) || state.members.length === 0) return null;
  const start = state.turn.phase === phase ? state.turn : { turnOrder: 0, since: phaseStart(state, phase) };
  const { turnSeconds, lastAt, members } = state;
  const elapsed = turnSeconds === null ? 0 : Math.floor((Math.max(now, lastAt) - start.since) / (turnSeconds * 1000));
  return (start.turnOrder + elapsed) % members.length;
}

/** The DID of the member in turn at `now`, or null. */
export function turnHolderAt(state: TurnState, now: Millis): string | null {
  const turnOrder = turnOrderAt(state, now);
  return turnOrder === null ? null : (state.members[turnOrder] ?? null);
}

/** The turns after the member in turn has passed at `at`. */
export function afterPass(state: TurnState, at: Millis): TurnStart {
  const phase = phaseAt(state, at);
  const turnOrder = turnOrderAt(state, at);
  if (turnOrder === null || !hasTurns(phase)) throw new Error(`no turn to pass in chamber ${state.chamberId}`);
  return { phase, turnOrder: (turnOrder + 1) % state.members.length, since: at };
}
