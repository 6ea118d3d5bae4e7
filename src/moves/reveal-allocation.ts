import * as v from 'valibot';
import type { ChamberState } from '../../projections/chamber.ts';
import { commitmentHash } from '../crypto/commitment.ts';
import { conflict, ForumError, invalid } from '../vocabulary/errors.ts';
import {
  allocation,
  characters,
  described,
  exactly,
  hexString,
  integer,
  NAME_CHARS_MAX,
  SALT_BYTES_MAX,
  SALT_BYTES_MIN,
} from '../vocabulary/schemas.ts';
import { type Allocation, BPS_TOTAL } from '../vocabulary/values.ts';
import { accountEventId, defineMove, moveBody } from './move.ts';
import { requireMember, requirePhase } from './rules.ts';
import * as sample from './samples.ts';

const allocations = v.pipe(
  v.array(
    exactly({ ideaId: characters(1, NAME_CHARS_MAX), bps: integer(0, BPS_TOTAL) }),
    'must be an array of { ideaId, bps }',
  ),
  v.check((items) => new Set(items.map((item) => item.ideaId)).size === items.length, 'must name each idea once'),
  v.check(
    (items) => items.reduce((sum, item) => sum + item.bps, 0) <= BPS_TOTAL,
    `must not add up to more than ${BPS_TOTAL} bps`,
  ),
);
const SALT = new RegExp(`^0x([0-9a-fA-F]{2}){${SALT_BYTES_MIN},${SALT_BYTES_MAX}}$`);

/** POST /chambers/:id/allocate/reveal: the reveal must hash to the stored commitment (specification, Allocations). */
export const reveal = defineMove({
  operation: 'reveal',
  method: 'POST',
  path: '/chambers/:id/allocate/reveal',
  event: 'allocation.revealed',
  body: moveBody({
    allocations,
    salt: hexString(SALT, `must be 0x and hex digits for ${SALT_BYTES_MIN} to ${SALT_BYTES_MAX} bytes`),
  }),
  payload: v.strictObject({
    allocations: v.array(allocation),
    salt: described(SALT, `as sent, ${SALT_BYTES_MIN} to ${SALT_BYTES_MAX} bytes`),
    accountEventId,
  }),
  response: v.strictObject({ ok: v.literal(true), verified: v.literal(true) }),

  decide({ allocations, salt }, context) {
    requirePhase(context, 'ALLOCATE_REVEAL');
    requireMember(context);
    const { state, did } = context;
    if (state.reveals.has(did)) throw conflict(`${did} has already revealed in chamber ${state.chamberId}`);
    const problems = [...allocationProblems(state, allocations)];
    if (problems.length > 0) throw invalid(problems.join('; '));
    const stored = state.commitments.get(did);
    if (stored === undefined) {
      throw new ForumError('FORUM_ERR_COMMITMENT', `${did} made no commitment in chamber ${state.chamberId}`);
    }
    const revealed = commitmentHash({ chamberId: state.chamberId, did, allocations, salt });
    if (revealed !== stored.toLowerCase()) {
      throw new ForumError('FORUM_ERR_COMMITMENT', `the reveal hashes to ${revealed}, but the commitment is ${stored}`);
    }
    return { allocations, salt };
  },
  answer: () => ({ ok: true, verified: true }),
  impliedBody: ({ allocations, salt }) => ({
    allocations: allocations.map(({ ideaId, bps }) => ({ ideaId, bps })),
    salt,
  }),
  narrate: ({ allocations }, names) => {
    const shares = allocations.map(({ ideaId, bps }) => `${names.idea(ideaId)} ${bps} bps`).join(', ');
    return `reveals ${shares || 'an abstention'}`;
  },

  texts: {
    tag: 'Allocations',
    summary: 'Reveal the allocation, in ALLOCATE_REVEAL',
    description:
      'The reveal must hash to the commitment, in the same order. Each idea at most once, no withdrawn ideas, at most 10000 bps in total; the rest are abstentions.',
    answered: 'The reveal matches the commitment and counts.',
    errors: ['FORUM_ERR_COMMITMENT', 'FORUM_ERR_MEMBER', 'FORUM_ERR_CONFLICT'],
    guide: { when: 'ALLOCATE_REVEAL', body: '{"allocations", "salt"}' },
  },
  example: {
    body: { allocations: sample.ALLOCATIONS.map((share) => ({ ...share })), salt: sample.SALT },
    payload: { allocations: sample.ALLOCATIONS, salt: sample.SALT, accountEventId: 2 },
    answer: { ok: true, verified: true },
  },
});

/** A single unknown or withdrawn idea invalidates the whole reveal, because the hash covers all ideas. */
function* allocationProblems(
  { chamberId, ideas }: ChamberState,
  allocations: readonly Allocation[],
): Generator<string> {
  const byId = new Map(ideas.map((idea) => [idea.ideaId, idea]));
  for (const [index, { ideaId }] of allocations.entries()) {
    const idea = byId.get(ideaId);
    const path = `allocations[${index}].ideaId: ${JSON.stringify(ideaId)}`;
    if (idea === undefined) yield `${path} not found in chamber ${chamberId}`;
    else if (idea.isWithdrawn) yield `${path} (${idea.ticker}) was withdrawn`;
  }
}
