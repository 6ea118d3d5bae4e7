import * as v from 'valibot';
import { type Idea, latestVersion } from '../../projections/ideas.ts';
import { conflict } from '../vocabulary/errors.ts';
import { characters, id, ideaId, NAME_CHARS_MAX, TEXT_CHARS_MAX } from '../vocabulary/schemas.ts';
import { accountEventId, defineMove, moveBody } from './move.ts';
import { content } from './propose.ts';
import { requireMoveLeft, requireOwnIdea, requireTurn } from './rules.ts';
import * as sample from './samples.ts';

/** Includes the proposal. */
export const VERSIONS_MAX = 16;

/** POST /chambers/:id/amend: the proposer changes the text of an idea. From then on, this text can graduate. */
export const amend = defineMove({
  operation: 'amend',
  method: 'POST',
  path: '/chambers/:id/amend',
  event: 'chamber.amended',
  body: v.pipe(
    moveBody({
      ideaId: v.string('must be a string'),
      name: v.exactOptional(content.name),
      description: v.exactOptional(characters(0, TEXT_CHARS_MAX)),
    }),
    v.check((body) => hasText(body), 'needs a name or a description'),
  ),
  payload: v.pipe(
    v.strictObject({
      ideaId,
      version: v.pipe(
        id,
        v.minValue(2),
        v.maxValue(VERSIONS_MAX),
        v.description('2 for the first amendment: 1 is the proposal'),
      ),
      name: v.exactOptional(v.pipe(v.string(), v.minLength(1), v.maxLength(NAME_CHARS_MAX))),
      description: v.exactOptional(v.pipe(v.string(), v.maxLength(TEXT_CHARS_MAX))),
      accountEventId,
    }),
    v.check((payload) => hasText(payload)),
  ),
  response: v.strictObject({ eventId: id, version: id }),

  decide({ seen: _, ideaId, ...changes }, context) {
    requireTurn(context, 'DEBATE');
    const idea = requireOwnIdea(context, ideaId, 'amend');
    // A stub does not show which texts changed.
    if (!context.isStub) requireChange(idea, changes);
    const version = latestVersion(idea) + 1;
    if (version > VERSIONS_MAX) throw conflict(`${ideaId} (${idea.ticker}) already has ${VERSIONS_MAX} versions`);
    requireMoveLeft(context);
    return { ideaId, version, ...changes };
  },
  answer: ({ eventId, payload }) => ({ eventId, version: payload.version }),
  impliedBody: ({ version: _, accountEventId: __, ...body }) => body,
  takesReplies: true,
  narrate: ({ ideaId, version, name, description }, names) => {
    const changes = [
      ...(name === undefined ? [] : [`name ${names.words(name)}`]),
      ...(description === undefined ? [] : [`description ${names.words(description)}`]),
    ];
    return `amends ${names.idea(ideaId)} (version ${version}): ${changes.join(', ')}`;
  },

  texts: {
    tag: 'Moves',
    summary: 'Amend your idea, in DEBATE and in turn',
    description: `Does not end the turn. Omitted fields keep their text. Members allocate to the latest text, and it becomes the token; an idea has at most ${VERSIONS_MAX} versions. Stances on earlier versions count as outdated.`,
    answered: 'The event and the new version.',
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_TURN', 'FORUM_ERR_FORBIDDEN', 'FORUM_ERR_CONFLICT'],
    guide: { when: 'DEBATE, in turn, by the proposer', body: '{"ideaId", "name", "description"}' },
    command: {
      summary: 'Changes the name or the description of your idea, in turn',
      example: 'move amend 1 --idea=idea-1 --description="Pays out after 30 dry days"',
      options: {
        idea: { member: 'ideaId', value: 'IDEA', help: 'your idea, by id or ticker' },
        name: { member: 'name', value: 'NAME', help: 'the new name' },
        description: { member: 'description', value: 'TEXT', help: 'the new description' },
      },
    },
  },
  example: {
    body: { ideaId: 'idea-1', description: sample.AMENDED_DESCRIPTION },
    payload: { ideaId: 'idea-1', version: 2, description: sample.AMENDED_DESCRIPTION, accountEventId: 2 },
    answer: { eventId: 5, version: 2 },
  },
});

interface Texts {
  readonly name?: string;
  readonly description?: string;
}

function hasText({ name, description }: Texts): boolean {
  return name !== undefined || description !== undefined;
}

/** Throws FORUM_ERR_CONFLICT. */
function requireChange(idea: Idea, changes: Texts): void {
  const { name, description, withheldTexts } = { ...idea, ...changes };
  if (name !== idea.name || description !== idea.description) return;
  // A withheld text may have differed.
  if (withheldTexts.some((text) => changes[text] !== undefined)) return;
  throw conflict(`${idea.ideaId} (${idea.ticker}) already has this text`);
}
