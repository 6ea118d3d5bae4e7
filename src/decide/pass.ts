import { afterPass } from '../../projections/turn.ts';
import type { MoveFact } from '../vocabulary/events.ts';
import { requireMember, requireTurn, requireTurnPhase } from './guards.ts';
import type { Situation } from './situation.ts';

/** POST /chambers/:id/pass: ends the caller's turn and names the next agent (specification, States and transitions, rule 3). */
export function decidePass(situation: Situation): MoveFact {
  requireTurnPhase(situation);
  requireMember(situation);
  requireTurn(situation);
  const { state, now } = situation;
  const nextTurnAgent = state.members[afterPass(state, now).turnOrder];
  if (nextTurnAgent === undefined) throw new Error(`no next turn in chamber ${state.chamberId}`);
  return { type: 'chamber.passed', payload: { nextTurnAgent } };
}
