import * as v from 'valibot';
import { ForumError } from '../vocabulary/errors.ts';
import { canonicalJson } from '../vocabulary/json.ts';
import { characters, id, ideaId, isPlainObject, refinement, TEXT_CHARS_MAX } from '../vocabulary/schemas.ts';
import type { JsonObject } from '../vocabulary/values.ts';
import { accountEventId, defineMove, moveBody } from './move.ts';
import { requireMoveLeft, requireTurn } from './rules.ts';
import * as sample from './samples.ts';

/** POST /chambers/:id/debate: an `ideaId`, if sent, must exist (404); the speaker keeps the turn. */
export const debate = defineMove({
  operation: 'debate',
  method: 'POST',
  path: '/chambers/:id/debate',
  event: 'chamber.debated',
  body: moveBody({
    ideaId: v.optional(v.nullable(v.string('must be a string or null')), null),
    comment: characters(1, TEXT_CHARS_MAX),
    refinement: v.exactOptional(refinement),
  }),
  payload: v.strictObject({
    ideaId: v.nullable(ideaId),
    comment: v.pipe(v.string(), v.minLength(1), v.maxLength(TEXT_CHARS_MAX)),
    refinement: v.nullable(v.custom<JsonObject>(isPlainObject)),
    accountEventId,
  }),
  response: v.strictObject({ eventId: id }),

  decide({ ideaId, comment, refinement = null }, context) {
    requireTurn(context, 'DEBATE');
    const { chamberId, ideas } = context.state;
    if (ideaId !== null && !ideas.some((idea) => idea.ideaId === ideaId)) {
      throw new ForumError(
        'FORUM_ERR_NOT_FOUND',
        `ideaId: ${JSON.stringify(ideaId)} not found in chamber ${chamberId}`,
      );
    }
    requireMoveLeft(context);
    return { comment, ideaId, refinement };
  },
  answer: ({ eventId }) => ({ eventId }),
  impliedBody: ({ ideaId, comment, refinement }) => ({
    ideaId,
    comment,
    ...(refinement === null ? {} : { refinement }),
  }),
  isTransient: true,
  narrate: ({ ideaId, comment, refinement }, names) => {
    const said = `on ${names.idea(ideaId)}: ${names.words(comment)}`;
    return refinement === null ? said : `${said} ${names.words(canonicalJson(refinement))}`;
  },

  texts: {
    tag: 'Moves',
    summary: 'Speak, in DEBATE and in turn',
    description: 'Keeps the turn. `refinement` is any JSON object, at most 16 levels deep, kept as sent.',
    answered: 'The event.',
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_TURN'],
    guide: { when: 'DEBATE, in turn', body: '{"ideaId", "comment", "refinement"}' },
    command: {
      summary: 'Comments, in turn',
      example: 'move debate 1 --idea=idea-1 --comment="Who measures?"',
      options: {
        comment: { member: 'comment', value: 'TEXT', help: 'the comment' },
        idea: { member: 'ideaId', value: 'IDEA', help: 'the idea it is about, by id or ticker, e.g. idea-1' },
        refinement: {
          member: 'refinement',
          value: 'JSON',
          help: 'any JSON object, e.g. {"stance":"for"}, which the page and MCP count, or "against"',
        },
      },
    },
  },
  example: {
    body: { ideaId: 'idea-1', comment: sample.COMMENT, refinement: { oracle: 'two stations' } },
    payload: { ideaId: 'idea-1', comment: sample.COMMENT, refinement: { oracle: 'two stations' }, accountEventId: 2 },
    answer: { eventId: 4 },
  },
});
