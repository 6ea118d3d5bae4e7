// The rules that several moves share, in the order in which they are checked: phase, membership, turn.
import { isClosed, phaseAt } from '../../projections/phase.ts';
import { hasTurns, turnHolderAt } from '../../projections/turn.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { Phase } from '../vocabulary/values.ts';
import type { Situation } from './situation.ts';

/** Specification, States and transitions, rule 1; throws FORUM_ERR_PHASE. */
export function requirePhase({ state, now }: Situation, expected: Phase): void {
  const actual = phaseAt(state, now);
  if (actual !== expected) throw phaseError(expected, actual);
  if (expected === 'ALLOCATE_REVEAL' && isClosed(state, now)) {
    throw new ForumError(
      'FORUM_ERR_PHASE',
      'expected phase ALLOCATE_REVEAL before its deadline; actual phase ALLOCATE_REVEAL, past its deadline: the chamber is being committed',
    );
  }
}

/** Pass is allowed in PROPOSAL and DEBATE; throws FORUM_ERR_PHASE. */
export function requireTurnPhase({ state, now }: Situation): void {
  const actual = phaseAt(state, now);
  if (!hasTurns(actual)) throw phaseError('PROPOSAL or DEBATE', actual);
}

export function requireMember({ state, did }: Situation): void {
  if (state.members.includes(did)) return;
  throw new ForumError('FORUM_ERR_MEMBER', `${did} is not a member of chamber ${state.chamberId}`);
}

/** Specification, States and transitions, rule 2; throws FORUM_ERR_TURN. */
export function requireTurn({ state, did, now }: Situation): void {
  const holder = turnHolderAt(state, now);
  if (holder !== did) throw new ForumError('FORUM_ERR_TURN', `it is the turn of ${holder}`);
}

function phaseError(expected: string, actual: Phase): ForumError {
  return new ForumError('FORUM_ERR_PHASE', `expected phase ${expected}, actual phase ${actual}`);
}
