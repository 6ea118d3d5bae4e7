import * as v from 'valibot';
import { latestVersion } from '../../projections/ideas.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { canonicalJson } from '../vocabulary/json.ts';
import { characters, id, ideaId, integer, isPlainObject, refinement, TEXT_CHARS_MAX } from '../vocabulary/schemas.ts';
import { type JsonObject, STANCES } from '../vocabulary/values.ts';
import { accountEventId, type DecisionContext, defineMove, moveBody } from './move.ts';
import { requireIdea, requireMoveLeft, requireNotWithdrawn, requireTurn } from './rules.ts';
import * as sample from './samples.ts';

const replyTo = v.pipe(
  integer(1, Number.MAX_SAFE_INTEGER),
  v.description('the eventId of an earlier proposal, comment or amendment'),
);
const stance = v.picklist(STANCES, `must be one of ${STANCES.join(', ')}`);

/** POST /chambers/:id/debate: `ideaId` and `replyTo`, if present, must exist (404). A comment does not end the turn. */
export const debate = defineMove({
  operation: 'debate',
  method: 'POST',
  path: '/chambers/:id/debate',
  event: 'chamber.debated',
  body: v.pipe(
    moveBody({
      ideaId: v.optional(v.nullable(v.string('must be a string or null')), null),
      comment: characters(1, TEXT_CHARS_MAX),
      refinement: v.exactOptional(refinement),
      replyTo: v.exactOptional(v.nullable(replyTo)),
      stance: v.exactOptional(v.nullable(stance)),
    }),
    v.forward(
      v.check(({ ideaId, stance = null }) => stance === null || ideaId !== null, 'needs an ideaId'),
      ['stance'],
    ),
  ),
  payload: v.strictObject({
    ideaId: v.nullable(ideaId),
    comment: v.pipe(v.string(), v.minLength(1), v.maxLength(TEXT_CHARS_MAX)),
    refinement: v.exactOptional(v.nullable(v.custom<JsonObject>(isPlainObject))),
    replyTo: v.exactOptional(replyTo),
    stance: v.exactOptional(stance),
    version: v.exactOptional(v.pipe(id, v.description('the version of the idea that the stance is on'))),
    accountEventId,
  }),
  response: v.strictObject({ eventId: id }),

  decide(body, context) {
    const { ideaId, comment, refinement = null } = body;
    requireTurn(context, 'DEBATE');
    const idea = ideaId === null ? null : requireIdea(context.state, ideaId);
    const reply = body.replyTo == null ? {} : { replyTo: requireSpeech(context, body.replyTo) };
    if (idea === null || body.stance == null) {
      requireMoveLeft(context);
      return { comment, ideaId, refinement, ...reply };
    }
    requireNotWithdrawn(idea);
    requireMoveLeft(context);
    return { comment, ideaId, refinement, ...reply, stance: body.stance, version: latestVersion(idea) };
  },
  answer: ({ eventId }) => ({ eventId }),
  impliedBody: ({ ideaId, comment, refinement, replyTo, stance }) => ({
    ideaId,
    comment,
    ...(refinement != null && { refinement }),
    ...(replyTo !== undefined && { replyTo }),
    ...(stance !== undefined && { stance }),
  }),
  // The state does not keep the comment; staging.ts counts the memory of stances as part of their ideas.
  isTransient: true,
  takesReplies: true,
  replyTo: (body) => {
    if (typeof body !== 'object' || body === null || !('replyTo' in body)) return undefined;
    const { success, output } = v.safeParse(replyTo, body['replyTo' as keyof typeof body]);
    return success ? output : undefined;
  },
  narrate: ({ ideaId, comment, refinement, replyTo, stance }, names) => {
    const reply = replyTo === undefined ? '' : `, in reply to event ${replyTo}`;
    const said = `${stance ?? 'on'} ${names.idea(ideaId)}${reply}: ${names.words(comment)}`;
    return refinement == null ? said : `${said} ${names.words(canonicalJson(refinement))}`;
  },

  texts: {
    tag: 'Moves',
    summary: 'Speak, in DEBATE and in turn',
    description:
      'Does not end the turn. `stance` is your current opinion of the idea: the latest stance of each member counts in the straw poll, and is outdated once the idea is amended. `replyTo` is the eventId of an earlier proposal, comment or amendment. `refinement` is any JSON object, at most 16 levels deep, kept as sent.',
    answered: 'The event.',
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_TURN', 'FORUM_ERR_CONFLICT'],
    guide: { when: 'DEBATE, in turn', body: '{"ideaId", "comment", "refinement", "replyTo", "stance"}' },
    command: {
      summary: 'Comments, in turn',
      example: 'move debate 1 --idea=idea-1 --stance=undecided --comment="Who measures?"',
      options: {
        comment: { member: 'comment', value: 'TEXT', help: 'the comment' },
        idea: { member: 'ideaId', value: 'IDEA', help: 'the idea it is about, by id or ticker, e.g. idea-1' },
        'reply-to': { member: 'replyTo', value: 'EVENT', help: 'the eventId of what it replies to' },
        stance: { member: 'stance', value: 'STANCE', help: `on the idea, for now: ${STANCES.join(', ')}` },
        refinement: { member: 'refinement', value: 'JSON', help: 'any JSON object, kept as sent' },
      },
    },
  },
  example: {
    body: { ideaId: 'idea-1', comment: sample.COMMENT, refinement: { oracle: 'two stations' } },
    payload: { ideaId: 'idea-1', comment: sample.COMMENT, refinement: { oracle: 'two stations' }, accountEventId: 2 },
    answer: { eventId: 4 },
  },
});

/** Throws FORUM_ERR_NOT_FOUND. */
function requireSpeech({ state, takesReplies }: DecisionContext, eventId: number): number {
  if (takesReplies(eventId)) return eventId;
  const detail = `replyTo: event ${eventId} is not a proposal, comment or amendment of chamber ${state.chamberId}`;
  throw new ForumError('FORUM_ERR_NOT_FOUND', detail);
}
