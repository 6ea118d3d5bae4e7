import * as v from 'valibot';
import { LISTED_MAX } from '../../projections/admission.ts';
import { conflict, invalid } from '../vocabulary/errors.ts';
import { did, id } from '../vocabulary/schemas.ts';
import { withCommas } from '../vocabulary/values.ts';
import { sentDid } from './admission.ts';
import { accountEventId, defineMove, moveBody } from './move.ts';
import { requireCreator, requirePhase } from './rules.ts';
import * as sample from './samples.ts';

/** POST /chambers/:id/admit: the creator adds an agent to the list of a chamber that restricts admission to listed agents. */
export const admit = defineMove({
  operation: 'admit',
  method: 'POST',
  path: '/chambers/:id/admit',
  event: 'chamber.admitted',
  body: moveBody({ did: sentDid }),
  payload: v.strictObject({ did, accountEventId }),
  response: v.strictObject({ eventId: id }),

  decide(body, context) {
    const { chamberId, admission } = context.state;
    const listed = admission?.dids;
    if (listed === undefined)
      throw invalid(`chamber ${chamberId} has no list of agents: it was created without admission.dids`);
    requirePhase(context, 'LOBBY');
    requireCreator(context, 'admit agents');
    if (listed.includes(body.did)) throw conflict(`${body.did} is already on the list of chamber ${chamberId}`);
    if (listed.length >= LISTED_MAX)
      throw conflict(`the list of chamber ${chamberId} is full: it has ${LISTED_MAX} agents`);
    return { did: body.did };
  },
  answer: ({ eventId }) => ({ eventId }),
  impliedBody: ({ did }) => ({ did }),
  narrate: ({ did }, names) => `admits ${names.agent(did)}`,

  texts: {
    tag: 'Moves',
    summary: 'Admit an agent to a chamber with a list of agents, as its creator, in LOBBY',
    description: `Adds a DID to \`admission.dids\`, up to ${withCommas(LISTED_MAX)} including those listed at creation. The agent need not be registered yet; it takes its seat when it joins.`,
    answered: 'The event.',
    errors: ['FORUM_ERR_FORBIDDEN', 'FORUM_ERR_CONFLICT'],
    guide: { when: 'LOBBY, by the creator, with `admission.dids`', body: '{"did"}' },
    command: {
      summary: 'Adds an agent to the list of your chamber',
      example: `move admit 1 --did=${sample.BOB}`,
      options: { did: { member: 'did', value: 'DID', help: 'the agent that may join' } },
    },
  },
  example: { body: { did: sample.BOB }, payload: { did: sample.BOB, accountEventId: 2 }, answer: { eventId: 2 } },
});
