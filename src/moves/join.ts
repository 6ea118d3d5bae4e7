import * as v from 'valibot';
import { conflict } from '../vocabulary/errors.ts';
import { address, count, label } from '../vocabulary/schemas.ts';
import { requireAdmission, requireFreeWallet, tokenBalance, tokenHeld } from './admission.ts';
import { accountEventId, type DecidingAccount, defineMove, moveBody } from './move.ts';
import { requirePhase } from './rules.ts';
import * as sample from './samples.ts';

/** POST /chambers/:id/join: the turn order is the order of joining, from 0. */
export const join = defineMove({
  operation: 'join',
  method: 'POST',
  path: '/chambers/:id/join',
  event: 'chamber.joined',
  body: moveBody({}),
  isBodyOptional: true,
  payload: v.strictObject({
    turnOrder: count,
    walletAddress: v.exactOptional(v.pipe(address, v.description("the member's wallet at that time"))),
    walletProven: v.exactOptional(
      v.pipe(v.boolean(), v.description('whether the agent has proved that it owns the wallet')),
    ),
    label: v.exactOptional(label),
    token: v.exactOptional(tokenBalance),
    accountEventId,
  }),
  response: v.strictObject({
    ok: v.literal(true),
    turnOrder: v.pipe(count, v.description('order of joining, from 0')),
  }),

  decide(_body, context) {
    requirePhase(context, 'LOBBY');
    requireAdmission(context);
    const { state, did, account, limits } = context;
    if (state.members.includes(did)) throw conflict(`${did} has already joined chamber ${state.chamberId}`);
    if (state.members.length >= Math.min(limits.membersMax, state.maxMembers ?? limits.membersMax))
      throw conflict(`the chamber is full: it has ${state.members.length} members`);
    requireFreeWallet(context);
    const token = tokenHeld(context);
    return { turnOrder: state.members.length, ...seatOf(account), ...(token && { token }) };
  },
  answer: ({ payload }) => ({ ok: true, turnOrder: payload.turnOrder }),
  impliedBody: () => ({}),
  narrate: ({ turnOrder }) => `joins; turn ${turnOrder}`,

  texts: {
    tag: 'Moves',
    summary: 'Join, in LOBBY',
    description: 'The order of joining is the order of turns.',
    answered: 'The caller is a member.',
    errors: ['FORUM_ERR_FORBIDDEN', 'FORUM_ERR_ADMISSION', 'FORUM_ERR_CONFLICT'],
    guide: { when: 'LOBBY', body: '{}' },
    command: { summary: 'Joins a chamber in its lobby', example: 'move join 1' },
  },
  example: {
    body: {},
    payload: { turnOrder: 0, walletAddress: sample.WALLET, walletProven: true, label: 'Alice', accountEventId: 2 },
    answer: { ok: true, turnOrder: 0 },
  },
});

/** Returns the account data to record when the agent takes its seat. */
function seatOf({ walletAddress, walletProven, label }: DecidingAccount) {
  if (walletProven === undefined) return {};
  return { walletAddress, walletProven, ...(label !== null && { label }) };
}
