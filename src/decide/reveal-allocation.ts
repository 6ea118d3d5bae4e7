import { commitmentHash } from '../crypto/commitment.ts';
import type { Body } from '../vocabulary/commands.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { MoveFact } from '../vocabulary/events.ts';
import { requireMember, requirePhase } from './guards.ts';
import type { Situation } from './situation.ts';

/** POST /chambers/:id/allocate/reveal: the hash of what is revealed must be the stored commitment (specification, Allocations). */
export function decideReveal(body: Body<'reveal'>, situation: Situation): MoveFact {
  requirePhase(situation, 'ALLOCATE_REVEAL');
  requireMember(situation);
  requireIdeas(body, situation);
  requireFirst(situation);
  requireMatch(body, situation);
  return { type: 'allocation.revealed', payload: body };
}

function requireIdeas({ allocations }: Body<'reveal'>, { state }: Situation): void {
  const known = new Set(state.ideas.map((idea) => idea.ideaId));
  const stranger = allocations.findIndex((allocation) => !known.has(allocation.ideaId));
  if (stranger === -1) return;
  throw new ForumError(
    'FORUM_ERR_VALIDATION',
    `allocations[${stranger}].ideaId: there is no idea ${JSON.stringify(allocations[stranger]?.ideaId)} in chamber ${state.chamberId}`,
  );
}

function requireFirst({ state, did }: Situation): void {
  if (!state.reveals.has(did)) return;
  throw new ForumError('FORUM_ERR_CONFLICT', `${did} has already revealed in chamber ${state.chamberId}`);
}

function requireMatch({ allocations, salt }: Body<'reveal'>, { state, did }: Situation): void {
  const stored = state.commitments.get(did);
  if (stored === undefined) {
    throw new ForumError('FORUM_ERR_COMMITMENT', `${did} made no commitment in chamber ${state.chamberId}`);
  }
  const revealed = commitmentHash({ chamberId: state.chamberId, did, allocations, salt });
  if (revealed === stored.toLowerCase()) return;
  throw new ForumError('FORUM_ERR_COMMITMENT', `what is revealed hashes to ${revealed}, the commitment is ${stored}`);
}
