import type { AccountState } from '../../projections/account.ts';
import type { Body } from '../vocabulary/commands.ts';
import type { AccountFact } from '../vocabulary/events.ts';

/** PUT /personality: merged per key, arrays replaced whole. */
export function decideChangePersonality({ patch }: Body<'changePersonality'>, state: AccountState): AccountFact {
  return { type: 'agent.personality_changed', payload: { patch, personality: { ...state.personality, ...patch } } };
}
