import * as v from 'valibot';
import { lacksMembers } from '../../projections/phase-ends.ts';
import { conflict, invalid } from '../vocabulary/errors.ts';
import { id } from '../vocabulary/schemas.ts';
import { accountEventId, defineMove, moveBody } from './move.ts';
import { requireCreator, requirePhase } from './rules.ts';

/** POST /chambers/:id/start: the creator of a chamber with rounds ends LOBBY. */
export const start = defineMove({
  operation: 'start',
  method: 'POST',
  path: '/chambers/:id/start',
  event: 'chamber.started',
  body: moveBody({}),
  isBodyOptional: true,
  payload: v.strictObject({ accountEventId }),
  response: v.strictObject({ eventId: id }),

  decide(_body, context) {
    const { state } = context;
    if (state.rounds === null)
      throw invalid(`chamber ${state.chamberId} has no rounds: its lobby ends at its deadline`);
    requirePhase(context, 'LOBBY');
    requireCreator(context, 'start it');
    const { chamberId, members, minMembers } = state;
    if (members.length === 0) throw conflict(`chamber ${chamberId} has no members yet`);
    if (lacksMembers(state))
      throw conflict(`chamber ${chamberId} has ${members.length} of at least ${minMembers} members`);
    return {};
  },
  answer: ({ eventId }) => ({ eventId }),
  impliedBody: () => ({}),
  isTransient: true,
  narrate: () => 'starts the chamber',

  texts: {
    tag: 'Moves',
    summary: 'End LOBBY, as the creator of a chamber with rounds',
    description: 'PROPOSAL begins at once. The chamber must have at least one member, and at least `minMembers`.',
    answered: 'The event.',
    errors: ['FORUM_ERR_FORBIDDEN', 'FORUM_ERR_CONFLICT'],
    guide: { when: 'LOBBY, by the creator, with rounds', body: '{}' },
    command: { summary: 'Ends the lobby of your chamber with rounds', example: 'move start 1' },
  },
  example: { body: {}, payload: { accountEventId: 2 }, answer: { eventId: 3 } },
});
