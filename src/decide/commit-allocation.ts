import type { Body } from '../vocabulary/commands.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { MoveFact } from '../vocabulary/events.ts';
import { requireMember, requirePhase } from './guards.ts';
import type { Situation } from './situation.ts';

/** POST /chambers/:id/allocate/commit: one commitment for each member. */
export function decideCommit(body: Body<'commit'>, situation: Situation): MoveFact {
  requirePhase(situation, 'ALLOCATE_COMMIT');
  requireMember(situation);
  const { state, did } = situation;
  if (state.commitments.has(did)) {
    throw new ForumError('FORUM_ERR_CONFLICT', `${did} has already committed in chamber ${state.chamberId}`);
  }
  return { type: 'allocation.committed', payload: { commitment: body.commitment } };
}
