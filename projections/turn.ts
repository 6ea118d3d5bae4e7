// Whose turn it is: pure functions of a chamber's effective ends, its log and the clock. Turns go in join order, wrapping round, from turn 0 in
// each phase that has them.
import type { ChamberEvent } from '../src/vocabulary/events.ts';
import type { Millis, Phase, Rounds } from '../src/vocabulary/values.ts';
import { type PhaseState, phaseAt, phaseEnd } from './phase.ts';

export type TurnPhase = 'PROPOSAL' | 'DEBATE';

/** The moves that keep the turn, count in it and break a silent round. */
export const SPEECH: ReadonlySet<ChamberEvent['type']> = new Set([
  'chamber.proposed',
  'chamber.debated',
  'chamber.amended',
  'chamber.withdrawn',
]);

/** What the moves of a turn phase have made of its turns; `phase` is null before the first of them. */
export interface Turns {
  readonly phase: TurnPhase | null;
  /**
   * The turn that began at `since`, counted from 0: in a chamber with rounds from the beginning of the phase, in others from the last
   * turn of the first member.
   */
  readonly count: number;
  /** When the last pass was, or the phase began. */
  readonly since: Millis;
  /**
   * The number of turns in a row before that, in a chamber with rounds, that were silent: ended by a pass, with nothing proposed or
   * debated in them.
   */
  readonly silent: number;
  /** The last turn in which its holder spoke, and how often; kept only in chambers with rounds or `movesPerTurn`. */
  readonly spoken: { readonly turn: number; readonly moves: number } | null;
  /** How many turns of each member had run out by `since`, in this phase and the one before it; empty where none had. */
  readonly missed: readonly number[];
}

/** The part of a chamber's state that determines its turns. */
export interface TurnState extends PhaseState {
  readonly chamberId: number;
  readonly turnSeconds: number | null;
  readonly rounds: Rounds | null;
  /** How many moves besides the pass a turn may have. */
  readonly movesPerTurn: number | null;
  /** The members in turn order; the index is the turnOrder. */
  readonly members: readonly string[];
  readonly turns: Turns;
}

/** What turnAt reads: the number of members matters, not who they are. */
export type TurnClock = Omit<TurnState, 'members'> & { readonly members: { readonly length: number } };

export const NO_TURNS: Turns = { phase: null, count: 0, since: 0, silent: 0, spoken: null, missed: [] };

export interface Turn {
  readonly phase: TurnPhase;
  /** The number of the turn in its phase, from 0. */
  readonly count: number;
  readonly turnOrder: number;
  /** How many turns have run out since the last pass, or since the phase began. */
  readonly expired: number;
  readonly endsAt: Millis;
  /** How often its holder has spoken in it. */
  readonly moves: number;
}

export function hasTurns(phase: Phase): phase is TurnPhase {
  return phase === 'PROPOSAL' || phase === 'DEBATE';
}

/** The turns of the phase so far, which start at its start. */
export function turnsOf({ turns, ends }: Pick<TurnClock, 'turns' | 'ends'>, phase: TurnPhase): Turns {
  if (turns.phase === phase) return turns;
  return { ...NO_TURNS, phase, since: phase === 'PROPOSAL' ? ends.lobbyDeadline : ends.proposalDeadline };
}

/** The turn at `now`; null outside PROPOSAL and DEBATE, and without members. */
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
  // A turn without a limit never expires.
  return turnsOf(state, phase).since + (expired === 0 ? 0 : expired * turnMillis(state));
}

export function turnMillis({ turnSeconds }: Pick<TurnClock, 'turnSeconds'>): Millis {
  return turnSeconds === null ? Number.POSITIVE_INFINITY : turnSeconds * 1000;
}

/** When the turn at `now` ends unless it is passed: null without a turn, and where turns have no limit. */
export function turnEnd(state: TurnClock, now: Millis, turn = turnAt(state, now)): Millis | null {
  if (turn === null || turn.endsAt === Number.POSITIVE_INFINITY) return null;
  return Math.min(turn.endsAt, phaseEnd(state, turn.phase) ?? turn.endsAt);
}

/**
 * The next instant at which the clock alone changes a chamber: its phase, its turn, or whether it takes moves. Infinity if only an
 * event can change it. A caller that waits for a change of a chamber waits for its events and for this instant.
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

/** How many turns of the member had run out by `now`, in all phases of the chamber. */
export function missedTurns(state: TurnClock, turnOrder: number, now: Millis): number {
  return missedBefore(state, turnOrder, runsUntil(state, Math.max(now, state.lastAt)));
}

function missedBefore({ turns, members }: TurnClock, turnOrder: number, runs: readonly Run[]): number {
  return runs.reduce((sum, run) => sum + turnsIn(run, turnOrder, members.length), turns.missed[turnOrder] ?? 0);
}

/** Turns that ran out one after the other: `length` of them, from the one of that count on. */
interface Run {
  readonly count: number;
  readonly length: number;
}

/** The turns that ran out by `at` and that `turns` does not count yet: after the last pass, and in the phase after that. */
function runsUntil(state: TurnClock, at: Millis): readonly Run[] {
  if (state.turnSeconds === null || state.members.length === 0) return [];
  const phases: readonly TurnPhase[] = state.turns.phase === 'DEBATE' ? ['DEBATE'] : ['PROPOSAL', 'DEBATE'];
  return phases.map((phase) => {
    const { count, since } = turnsOf(state, phase);
    const until = Math.min(at, phaseEnd(state, phase) ?? at);
    return { count, length: Math.max(0, Math.floor((until - since) / turnMillis(state))) };
  });
}

/** How many turns of the run are the member's. */
function turnsIn({ count, length }: Run, turnOrder: number, memberCount: number): number {
  const before = (end: number) => Math.ceil((end - turnOrder) / memberCount);
  return before(count + length) - before(count);
}

/** The same for all members, as `Turns` holds it. */
function missedByAll(state: TurnState, at: Millis): readonly number[] {
  const runs = runsUntil(state, at);
  if (runs.every(({ length }) => length === 0)) return state.turns.missed;
  return state.members.map((_, turnOrder) => missedBefore(state, turnOrder, runs));
}

/** The turns after the member in turn has passed at `at`. */
export function afterPass(state: TurnState, at: Millis): Turns {
  const turn = turnAt(state, at);
  if (turn === null) throw new Error(`no turn to pass in chamber ${state.chamberId}`);
  const isSilent = state.rounds !== null && turn.moves === 0;
  const silentBefore = turn.expired > 0 ? 0 : turnsOf(state, turn.phase).silent;
  const count = state.rounds === null ? (turn.turnOrder + 1) % state.members.length : turn.count + 1;
  const silent = isSilent ? silentBefore + 1 : 0;
  return { ...NO_TURNS, phase: turn.phase, count, since: at, silent, missed: missedByAll(state, at) };
}

/** The turns after the member in turn has spoken at `at`: proposed, debated, amended or withdrawn. */
export function afterSpeech(state: TurnState, at: Millis): Turns {
  if (state.rounds === null && state.movesPerTurn === null) return state.turns;
  const turn = turnAt(state, at);
  if (turn === null) return state.turns;
  const turns = turnsOf(state, turn.phase);
  const missed = missedByAll(state, turns.since);
  return { ...turns, spoken: { turn: turn.count, moves: turn.moves + 1 }, missed };
}
