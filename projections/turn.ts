// Determines whose turn it is: pure functions of a chamber's effective ends, its log and the clock. Turns go round in join order, and
// each phase with turns begins with turn 0.
import type { ChamberEvent } from '../src/vocabulary/events.ts';
import type { Millis, Phase, Rounds } from '../src/vocabulary/values.ts';
import { type PhaseState, phaseAt, phaseEnd } from './phase.ts';

export type TurnPhase = 'PROPOSAL' | 'DEBATE';

/** The moves that do not end the turn; they count for `movesPerTurn`, and a round with one of them is not silent. */
export const SPEECH: ReadonlySet<ChamberEvent['type']> = new Set([
  'chamber.proposed',
  'chamber.debated',
  'chamber.amended',
  'chamber.withdrawn',
]);

/** The state of the turns after the moves of a turn phase; `phase` is null before the first of them. */
export interface Turns {
  readonly phase: TurnPhase | null;
  /**
   * The turn that began at `since`, counted from 0: in a chamber with rounds from the beginning of the phase, otherwise from the first
   * member's latest turn.
   */
  readonly count: number;
  /** The time of the last pass, or the beginning of the phase. */
  readonly since: Millis;
  /**
   * The number of consecutive silent turns before that, in a chamber with rounds. A turn is silent if it was ended by a pass without any
   * proposal, comment, amendment or withdrawal.
   */
  readonly silent: number;
  /** The last turn in which its holder acted, and the number of moves in it; only in chambers with rounds or `movesPerTurn`. */
  readonly spoken: { readonly turn: number; readonly moves: number } | null;
  /** The number of each member's turns that had expired by `since`, in this phase and the previous one; empty if there were none. */
  readonly missed: readonly number[];
}

/** The part of a chamber's state that determines its turns. */
export interface TurnState extends PhaseState {
  readonly chamberId: number;
  readonly turnSeconds: number | null;
  readonly rounds: Rounds | null;
  /** The maximum number of moves in a turn, not counting the pass. */
  readonly movesPerTurn: number | null;
  /** The members in turn order; the index is the turnOrder. */
  readonly members: readonly string[];
  readonly turns: Turns;
}

/** The input of turnAt: it needs the number of members but not their DIDs. */
export type TurnClock = Omit<TurnState, 'members'> & { readonly members: { readonly length: number } };

export const NO_TURNS: Turns = { phase: null, count: 0, since: 0, silent: 0, spoken: null, missed: [] };

export interface Turn {
  readonly phase: TurnPhase;
  /** The number of the turn within its phase, from 0. */
  readonly count: number;
  readonly turnOrder: number;
  /** The number of turns that have expired since the last pass or the beginning of the phase. */
  readonly expired: number;
  readonly endsAt: Millis;
  /** The number of moves that the holder has made in this turn. */
  readonly moves: number;
}

export function hasTurns(phase: Phase): phase is TurnPhase {
  return phase === 'PROPOSAL' || phase === 'DEBATE';
}

/** Returns the turns of the phase so far; they begin with the phase. */
export function turnsOf({ turns, ends }: Pick<TurnClock, 'turns' | 'ends'>, phase: TurnPhase): Turns {
  if (turns.phase === phase) return turns;
  return { ...NO_TURNS, phase, since: phase === 'PROPOSAL' ? ends.lobbyDeadline : ends.proposalDeadline };
}

/** Returns the turn at `now`; null outside PROPOSAL and DEBATE, and if there are no members. */
export function turnAt(state: TurnClock, now: Millis): Turn | null {
  const phase = phaseAt(state, now);
  if (!hasTurns(phase) || state.members.length === 0) return null;
  const turns = turnsOf(state, phase);
  const limitMillis = turnMillis(state);
  const expired = Math.floor((Math.max(now, state.lastAt) - turns.since) / limitMillis);
  const count = turns.count + expired;
  return {
    phase,
    count,
    turnOrder: count % state.members.length,
    expired,
    endsAt: turns.since + (expired + 1) * limitMillis,
    moves: turns.spoken?.turn === count ? turns.spoken.moves : 0,
  };
}

export function turnStart(state: Pick<TurnClock, 'turns' | 'ends' | 'turnSeconds'>, { phase, expired }: Turn): Millis {
  // A turn without a time limit never expires.
  return turnsOf(state, phase).since + (expired === 0 ? 0 : expired * turnMillis(state));
}

export function turnMillis({ turnSeconds }: Pick<TurnClock, 'turnSeconds'>): Millis {
  return turnSeconds === null ? Number.POSITIVE_INFINITY : turnSeconds * 1000;
}

/** Returns the end of the turn at `now` if its holder does not pass; null if there is no turn, or if turns have no time limit. */
export function turnEnd(state: TurnClock, now: Millis, turn = turnAt(state, now)): Millis | null {
  if (turn === null || turn.endsAt === Number.POSITIVE_INFINITY) return null;
  return Math.min(turn.endsAt, phaseEnd(state, turn.phase) ?? turn.endsAt);
}

/**
 * Returns the next time at which a chamber changes without an event: its phase, its turn, or whether it accepts moves. Infinity if only
 * an event can change it. Callers that wait for a change of a chamber must wait for its events and for this time.
 */
export function nextClockChange(state: TurnClock, now: Millis): Millis {
  const at = Math.max(now, state.lastAt);
  const ends = [phaseEnd(state, phaseAt(state, now)), turnAt(state, now)?.endsAt];
  return Math.min(...ends.map((end) => (end && end > at ? end : Number.POSITIVE_INFINITY)));
}

/** Returns the DID of the turn holder at `now`, or null. */
export function turnHolderAt(state: TurnState, now: Millis): string | null {
  const turn = turnAt(state, now);
  return turn === null ? null : (state.members[turn.turnOrder] ?? null);
}

/** Returns how many of the member's turns had expired by `now`, in all phases of the chamber. */
export function missedTurns(state: TurnClock, turnOrder: number, now: Millis): number {
  return missedBefore(state, turnOrder, runsUntil(state, Math.max(now, state.lastAt)));
}

function missedBefore({ turns, members }: TurnClock, turnOrder: number, runs: readonly Run[]): number {
  return runs.reduce((sum, run) => sum + turnsIn(run, turnOrder, members.length), turns.missed[turnOrder] ?? 0);
}

/** Consecutive expired turns: `length` of them, beginning with turn number `count`. */
interface Run {
  readonly count: number;
  readonly length: number;
}

/** Returns the turns that had expired by `at` and that `turns` does not include: since the last pass, and in the following phase. */
function runsUntil(state: TurnClock, at: Millis): readonly Run[] {
  if (state.turnSeconds === null || state.members.length === 0) return [];
  const phases: readonly TurnPhase[] = state.turns.phase === 'DEBATE' ? ['DEBATE'] : ['PROPOSAL', 'DEBATE'];
  return phases.map((phase) => {
    const { count, since } = turnsOf(state, phase);
    const until = Math.min(at, phaseEnd(state, phase) ?? at);
    return { count, length: Math.max(0, Math.floor((until - since) / turnMillis(state))) };
  });
}

/** Returns how many turns of the run belong to the member. */
function turnsIn({ count, length }: Run, turnOrder: number, memberCount: number): number {
  const before = (end: number) => Math.ceil((end - turnOrder) / memberCount);
  return before(count + length) - before(count);
}

/** Returns the missed turns of all members, as `Turns` has them. */
function missedByAll(state: TurnState, at: Millis): readonly number[] {
  const runs = runsUntil(state, at);
  if (runs.every(({ length }) => length === 0)) return state.turns.missed;
  return state.members.map((_, turnOrder) => missedBefore(state, turnOrder, runs));
}

export function afterPass(state: TurnState, at: Millis): Turns {
  const turn = turnAt(state, at);
  if (turn === null) throw new Error(`no turn to pass in chamber ${state.chamberId}`);
  const isSilent = state.rounds !== null && turn.moves === 0;
  const silentBefore = turn.expired > 0 ? 0 : turnsOf(state, turn.phase).silent;
  const count = state.rounds === null ? (turn.turnOrder + 1) % state.members.length : turn.count + 1;
  const silent = isSilent ? silentBefore + 1 : 0;
  return { ...NO_TURNS, phase: turn.phase, count, since: at, silent, missed: missedByAll(state, at) };
}

/** Returns the turns after the turn holder proposes, comments, amends or withdraws at `at`. */
export function afterSpeech(state: TurnState, at: Millis): Turns {
  if (state.rounds === null && state.movesPerTurn === null) return state.turns;
  const turn = turnAt(state, at);
  if (turn === null) return state.turns;
  const turns = turnsOf(state, turn.phase);
  const missed = missedByAll(state, turns.since);
  return { ...turns, spoken: { turn: turn.count, moves: turn.moves + 1 }, missed };
}
