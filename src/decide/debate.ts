import type { Body } from '../vocabulary/commands.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { MoveFact } from '../vocabulary/events.ts';
import { requireMember, requirePhase, requireTurn } from './guards.ts';
import type { Situation } from './situation.ts';

/** POST /chambers/:id/debate: an idea that is named must exist (404); the turn stays with the speaker. */
export function decideDebate(body: Body<'debate'>, situation: Situation): MoveFact {
  requirePhase(situation, 'DEBATE');
  requireMember(situation);
  requireTurn(situation);
  const { ideaId, comment, refinement } = body;
  if (ideaId !== null && !situation.state.ideas.some((idea) => idea.ideaId === ideaId)) {
    throw new ForumError(
      'FORUM_ERR_NOT_FOUND',
      `ideaId: there is no idea ${JSON.stringify(ideaId)} in chamber ${situation.state.chamberId}`,
    );
  }
  return { type: 'chamber.debated', payload: { comment, ideaId, refinement: refinement ?? null } };
}
