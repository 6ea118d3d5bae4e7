import * as v from 'valibot';
import { id, ideaId } from '../vocabulary/schemas.ts';
import { accountEventId, defineMove, moveBody } from './move.ts';
import { requireMoveLeft, requireOwnIdea, requireTurn } from './rules.ts';

/** POST /chambers/:id/withdraw: the proposer permanently withdraws an idea. The ticker stays taken, and no allocation may name the idea. */
export const withdraw = defineMove({
  operation: 'withdraw',
  method: 'POST',
  path: '/chambers/:id/withdraw',
  event: 'chamber.withdrawn',
  body: moveBody({ ideaId: v.string('must be a string') }),
  payload: v.strictObject({ ideaId, accountEventId }),
  response: v.strictObject({ eventId: id }),

  decide(body, context) {
    requireTurn(context, 'PROPOSAL', 'DEBATE');
    const { ideaId } = requireOwnIdea(context, body.ideaId, 'withdraw');
    requireMoveLeft(context);
    return { ideaId };
  },
  answer: ({ eventId }) => ({ eventId }),
  impliedBody: ({ ideaId }) => ({ ideaId }),
  isTransient: true,
  narrate: ({ ideaId }, names) => `withdraws ${names.idea(ideaId)}`,

  texts: {
    tag: 'Moves',
    summary: 'Withdraw your idea, in PROPOSAL or DEBATE and in turn',
    description:
      'Does not end the turn. Permanent: the idea stays in all lists with `withdrawn: true`, its ticker stays taken, and a reveal that names it is rejected.',
    answered: 'The event.',
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_TURN', 'FORUM_ERR_FORBIDDEN', 'FORUM_ERR_CONFLICT'],
    guide: { when: 'PROPOSAL, DEBATE, in turn, by the proposer', body: '{"ideaId"}' },
    command: {
      summary: 'Withdraws your idea permanently, in turn',
      example: 'move withdraw 1 --idea=idea-1',
      options: { idea: { member: 'ideaId', value: 'IDEA', help: 'your idea, by id or ticker' } },
    },
  },
  example: {
    body: { ideaId: 'idea-1' },
    payload: { ideaId: 'idea-1', accountEventId: 2 },
    answer: { eventId: 5 },
  },
});
