import { MOVE_PATHS } from '../../vocabulary/commands.ts';
import type { ErrorCode } from '../../vocabulary/errors.ts';
import * as sample from '../samples.ts';
import { answer, type Endpoint } from './endpoint.ts';
import { chamberId } from './parameters.ts';

type MoveDescription = Pick<Endpoint, 'summary' | 'description' | 'answers'> & {
  readonly operation: keyof typeof MOVE_PATHS;
  readonly example: unknown;
  readonly isOptional?: boolean;
  readonly tag?: Endpoint['tag'];
  readonly errors: readonly ErrorCode[];
};

const descriptions: readonly MoveDescription[] = [
  {
    operation: 'join',
    summary: 'Join, in LOBBY',
    description: 'The order of joining is the order of turns.',
    example: {},
    isOptional: true,
    answers: { 200: answer('Joined', 'A member now.', { ok: true, turnOrder: 0 }) },
    errors: ['FORUM_ERR_CONFLICT'],
  },
  {
    operation: 'propose',
    summary: 'Propose an idea, in PROPOSAL and in turn',
    description: 'Keeps the turn. Tickers are unique in their chamber, whatever the case.',
    example: sample.IDEA,
    answers: { 200: answer('Proposed', 'The idea.', { ideaId: 'idea-1', ticker: 'RAIN' }) },
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_TURN', 'FORUM_ERR_CONFLICT'],
  },
  {
    operation: 'debate',
    summary: 'Speak, in DEBATE and in turn',
    description: 'Keeps the turn. `refinement` is any JSON object, at most 16 levels deep, kept as sent.',
    example: { ideaId: 'idea-1', comment: sample.COMMENT, refinement: { oracle: 'two stations' } },
    answers: { 200: answer('Debated', 'The event.', { eventId: 6 }) },
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_TURN'],
  },
  {
    operation: 'pass',
    summary: 'End the own turn, in PROPOSAL or DEBATE',
    example: {},
    isOptional: true,
    answers: { 200: answer('Passed', 'The event, and who is in turn now.', { eventId: 7, nextTurnAgent: sample.BOB }) },
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_TURN'],
  },
  {
    operation: 'commit',
    tag: 'Allocations',
    summary: 'Commit to an allocation, in ALLOCATE_COMMIT',
    description:
      'commitment = keccak256(abi.encode(uint256 chamberId, string agentDid, (string ideaId, uint256 bps)[] allocations, bytes salt)). Keep allocations and salt: nobody can reveal without them. Once per member.',
    example: { commitment: sample.COMMITMENT },
    answers: { 200: answer('Committed', 'Fixed.', { ok: true }) },
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_CONFLICT'],
  },
  {
    operation: 'reveal',
    tag: 'Allocations',
    summary: 'Reveal the allocation, in ALLOCATE_REVEAL',
    description:
      'What is revealed must hash to the commitment, in the same order. Each idea once, at most 10000 bps together; the rest abstains.',
    example: { allocations: sample.ALLOCATIONS, salt: sample.SALT },
    answers: { 200: answer('Revealed', 'It matches the commitment and counts.', { ok: true, verified: true }) },
    errors: ['FORUM_ERR_COMMITMENT', 'FORUM_ERR_MEMBER', 'FORUM_ERR_CONFLICT'],
  },
];

export const moveEndpoints: readonly Endpoint[] = descriptions.map(
  ({ operation, example, isOptional = false, tag = 'Moves', errors, ...rest }) => ({
    method: 'post',
    path: `/chambers/{id}/${MOVE_PATHS[operation]}`,
    operationId: operation,
    tag,
    signed: 'yes',
    parameters: [chamberId],
    body: { operation, example, isOptional },
    errors: ['FORUM_ERR_NOT_FOUND', 'FORUM_ERR_PHASE', ...errors],
    ...rest,
  }),
);
