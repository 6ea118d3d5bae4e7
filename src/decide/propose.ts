import type { Body } from '../vocabulary/commands.ts';
import { ForumError } from '../vocabulary/errors.ts';
import type { MoveFact } from '../vocabulary/events.ts';
import { requireMember, requirePhase, requireTurn } from './guards.ts';
import type { Situation } from './situation.ts';

/** POST /chambers/:id/propose: a ticker is unique in its chamber whatever the case; slots count from 1. */
export function decidePropose(body: Body<'propose'>, situation: Situation): MoveFact {
  requirePhase(situation, 'PROPOSAL');
  requireMember(situation);
  requireTurn(situation);
  const { state, wallet, limits } = situation;
  const ticker = body.ticker.toLowerCase();
  if (state.ideas.some((idea) => idea.ticker.toLowerCase() === ticker)) {
    throw new ForumError(
      'FORUM_ERR_CONFLICT',
      `ticker: ${body.ticker} already exists in chamber ${state.chamberId} (case does not count)`,
    );
  }
  if (state.ideas.length >= limits.ideasMax) {
    throw new ForumError('FORUM_ERR_CONFLICT', `the chamber is full: it has ${state.ideas.length} ideas`);
  }
  const slot = state.ideas.length + 1;
  return { type: 'chamber.proposed', payload: { ...body, ideaId: `idea-${slot}`, slot, creatorWallet: wallet } };
}
