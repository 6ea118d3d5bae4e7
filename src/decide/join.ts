import { ForumError } from '../vocabulary/errors.ts';
import type { MoveFact } from '../vocabulary/events.ts';
import { requirePhase } from './guards.ts';
import type { Situation } from './situation.ts';

/** POST /chambers/:id/join: the turn order is the order of joining, from 0. */
export function decideJoin(situation: Situation): MoveFact {
  requirePhase(situation, 'LOBBY');
  const { state, did, limits } = situation;
  if (state.members.includes(did)) {
    throw new ForumError('FORUM_ERR_CONFLICT', `${did} has already joined chamber ${state.chamberId}`);
  }
  if (state.members.length >= limits.membersMax) {
    throw new ForumError('FORUM_ERR_CONFLICT', `the chamber is full: it has ${state.members.length} members`);
  }
  return { type: 'chamber.joined', payload: { turnOrder: state.members.length } };
}
