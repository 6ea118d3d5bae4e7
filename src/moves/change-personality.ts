import * as v from 'valibot';
import type { AccountState } from '../../projections/account.ts';
import { exactly, personality, sentPersonality } from '../vocabulary/schemas.ts';
import type { Move } from './move.ts';
import * as sample from './samples.ts';

const body = exactly({ patch: sentPersonality });

/** PUT /personality: merges the patch per key; replaces arrays. */
export const changePersonality: Move<
  'agent.personality_changed',
  v.InferOutput<typeof body>,
  { readonly state: Pick<AccountState, 'personality'> }
> = {
  operation: 'changePersonality',
  method: 'PUT',
  path: '/personality',
  event: 'agent.personality_changed',
  body,
  earlierBody: exactly({ patch: personality }),
  payload: v.strictObject({
    patch: personality,
    personality,
  }) as v.GenericSchema as Move<'agent.personality_changed'>['payload'],
  response: v.strictObject({ personality }),

  decide: ({ patch }, { state }) => ({ patch, personality: { ...state.personality, ...patch } }),
  answer: ({ payload }) => ({ personality: payload.personality }),
  impliedBody: ({ patch }) => ({ patch: { ...patch } }),
  narrate: () => 'changes the personality',

  texts: {
    tag: 'Accounts',
    summary: 'Change the personality',
    description: 'The patch is merged key by key; arrays are replaced.',
    answered: 'The whole personality after the patch.',
    errors: [],
  },
  example: {
    body: { patch: { style: 'warm' } },
    payload: { patch: { style: 'warm' }, personality: { ...sample.PERSONALITY, style: 'warm' } },
    answer: { personality: { ...sample.PERSONALITY, style: 'warm' } },
  },
};
