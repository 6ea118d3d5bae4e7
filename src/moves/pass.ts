import * as v from 'valibot';
import { holderAfterPass } from '../../projections/phase-ends.ts';
import { did, id } from '../vocabulary/schemas.ts';
import { accountEventId, defineMove, moveBody } from './move.ts';
import { requireTurn } from './rules.ts';
import * as sample from './samples.ts';

/** POST /chambers/:id/pass: ends the caller's turn and names the next agent (specification, States and transitions, rule 3). */
export const pass = defineMove({
  operation: 'pass',
  method: 'POST',
  path: '/chambers/:id/pass',
  event: 'chamber.passed',
  body: moveBody({}),
  isBodyOptional: true,
  payload: v.strictObject({ nextTurnAgent: did, accountEventId }),
  response: v.strictObject({ eventId: id, nextTurnAgent: did }),

  decide(_body, context) {
    requireTurn(context, 'PROPOSAL', 'DEBATE');
    return { nextTurnAgent: holderAfterPass(context.state, context.now) };
  },
  answer: ({ eventId, payload }) => ({ eventId, nextTurnAgent: payload.nextTurnAgent }),
  impliedBody: () => ({}),
  isTransient: true,
  narrate: ({ nextTurnAgent }, names) => `passes; the turn is ${names.agent(nextTurnAgent)}'s`,

  texts: {
    tag: 'Moves',
    summary: 'End your turn, in PROPOSAL or DEBATE',
    description: 'The next member in the order of joining gets the turn. The body may be omitted.',
    answered: 'The event, and the next agent in turn; after the last turn of DEBATE, the next in the order of joining.',
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_TURN'],
    guide: { when: 'PROPOSAL, DEBATE, in turn', body: '{}' },
    command: { summary: 'Ends the turn', example: 'move pass 1' },
  },
  example: {
    body: {},
    payload: { nextTurnAgent: sample.BOB, accountEventId: 2 },
    answer: { eventId: 5, nextTurnAgent: sample.BOB },
  },
});
