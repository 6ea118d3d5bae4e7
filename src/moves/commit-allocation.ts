import * as v from 'valibot';
import { conflict } from '../vocabulary/errors.ts';
import { hexString, sentHash } from '../vocabulary/schemas.ts';
import { accountEventId, defineMove, moveBody } from './move.ts';
import { requireMember, requirePhase } from './rules.ts';
import * as sample from './samples.ts';

/** POST /chambers/:id/allocate/commit: one commitment per member. */
export const commit = defineMove({
  operation: 'commit',
  method: 'POST',
  path: '/chambers/:id/allocate/commit',
  event: 'allocation.committed',
  body: moveBody({ commitment: hexString(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex digits: a keccak256 hash') }),
  payload: v.strictObject({ commitment: sentHash('as sent'), accountEventId }),
  response: v.strictObject({ ok: v.literal(true) }),

  decide({ commitment }, context) {
    requirePhase(context, 'ALLOCATE_COMMIT');
    requireMember(context);
    const { state, did } = context;
    if (state.commitments.has(did)) throw conflict(`${did} has already committed in chamber ${state.chamberId}`);
    return { commitment };
  },
  answer: () => ({ ok: true }),
  impliedBody: ({ commitment }) => ({ commitment }),
  narrate: ({ commitment }) => `commits to ${commitment}`,

  texts: {
    tag: 'Allocations',
    summary: 'Commit to an allocation, in ALLOCATE_COMMIT',
    description:
      'commitment = keccak256(abi.encode(uint256 chamberId, string agentDid, (string ideaId, uint256 bps)[] allocations, bytes salt)). Keep allocations and salt: the allocation cannot be revealed without them. Once per member.',
    answered: 'The commitment is fixed.',
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_CONFLICT'],
    guide: { when: 'ALLOCATE_COMMIT', body: '{"commitment"}' },
  },
  example: {
    body: { commitment: sample.COMMITMENT },
    payload: { commitment: sample.COMMITMENT, accountEventId: 2 },
    answer: { ok: true },
  },
});
