import * as v from 'valibot';
import { seatWallet } from '../../projections/admission.ts';
import { conflict } from '../vocabulary/errors.ts';
import { address, characters, id, ideaId, NAME_CHARS_MAX, TEXT_CHARS_MAX } from '../vocabulary/schemas.ts';
import { accountEventId, defineMove, moveBody } from './move.ts';
import { requireMoveLeft, requireTurn } from './rules.ts';
import * as sample from './samples.ts';

/** Matches the tickers accepted by any release. */
export const TICKER = /^[A-Za-z0-9_.-]{1,32}$/;
/**
 * Clients resolve `.` and `..` as path segments, so no URL could contain these tickers. The others would be confused with names of ideas
 * and agents in transcripts.
 */
const RESERVED_TICKERS = [
  '\\.{1,2}',
  inAnyCase('idea-\\d+'),
  inAnyCase('a\\d+'),
  ...['system', 'service', 'creator'].map(inAnyCase),
];
const NEW_TICKER = new RegExp(`^(?!(?:${RESERVED_TICKERS.join('|')})$)[A-Za-z0-9_.-]{1,32}$`);
export const sentTicker = v.pipe(
  v.string('must be a string'),
  v.regex(
    NEW_TICKER,
    'must be 1 to 32 characters of A–Z a–z 0–9 _ . -, and neither . nor .. nor an id or a name such as idea-1, A1, system, service, creator',
  ),
);

/** Matches each letter in either case, because JSON Schema patterns have no flags. */
function inAnyCase(pattern: string): string {
  return pattern.replace(/(?<!\\)[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`);
}

// Not \P{Cc}, because consumers use the published pattern without the required flag.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters of the rule
const CONTROL_CHARACTERS = /^[^\u0000-\u001f\u007f-\u009f]*$/;
const earlierContent = {
  name: characters(1, NAME_CHARS_MAX),
  description: v.optional(characters(0, TEXT_CHARS_MAX), ''),
};
/** The texts of an idea in new requests. */
export const content = {
  ...earlierContent,
  name: v.pipe(earlierContent.name, v.regex(CONTROL_CHARACTERS, 'must not contain control characters')),
};

/** POST /chambers/:id/propose: tickers are unique per chamber, regardless of case; slots count from 1. */
export const propose = defineMove({
  operation: 'propose',
  method: 'POST',
  path: '/chambers/:id/propose',
  event: 'chamber.proposed',
  body: moveBody({ ...content, ticker: sentTicker }),
  earlierBody: moveBody({ ...earlierContent, ticker: v.pipe(v.string(), v.regex(TICKER)) }),
  payload: v.strictObject({
    ideaId,
    slot: id,
    name: v.pipe(v.string(), v.minLength(1), v.maxLength(NAME_CHARS_MAX)),
    ticker: v.pipe(v.string(), v.regex(TICKER)),
    description: v.pipe(v.string(), v.maxLength(TEXT_CHARS_MAX)),
    creatorWallet: v.pipe(
      address,
      v.description(
        "the creator in deployIdea: the proposer's wallet at that time, or its seat's wallet if the chamber requires proven wallets",
      ),
    ),
    accountEventId,
  }),
  response: v.strictObject({ ideaId, ticker: v.string() }),

  decide({ seen: _, ...body }, context) {
    requireTurn(context, 'PROPOSAL');
    requireMoveLeft(context);
    const { state, did, account, limits } = context;
    const ticker = body.ticker.toLowerCase();
    if (state.ideas.some((idea) => idea.ticker.toLowerCase() === ticker)) {
      throw conflict(
        `ticker: ${body.ticker} already exists in chamber ${state.chamberId} (tickers are case-insensitive)`,
      );
    }
    if (state.ideas.length >= limits.ideasMax)
      throw conflict(`the chamber is full: it has ${state.ideas.length} ideas`);
    const slot = state.ideas.length + 1;
    const assigned = { ideaId: `idea-${slot}`, slot };
    return { ...body, ...assigned, creatorWallet: seatWallet(state, did) ?? account.walletAddress };
  },
  answer: ({ payload }) => ({ ideaId: payload.ideaId, ticker: payload.ticker }),
  takesReplies: true,
  impliedBody: ({ name, ticker, description }) => ({ name, ticker, description }),
  narrate: ({ ticker, ideaId, name, description }, names) => {
    const named = `proposes ${ticker} (${ideaId}): ${names.words(name)}`;
    return description === '' ? named : `${named} ${names.words(description)}`;
  },

  texts: {
    tag: 'Moves',
    summary: 'Propose an idea, in PROPOSAL and in turn',
    description: 'Does not end the turn. Tickers are unique in their chamber, regardless of case.',
    answered: 'The idea.',
    errors: ['FORUM_ERR_MEMBER', 'FORUM_ERR_TURN', 'FORUM_ERR_CONFLICT'],
    guide: { when: 'PROPOSAL, in turn', body: '{"name", "ticker", "description"}' },
    command: {
      summary: 'Proposes an idea, in turn',
      example: 'move propose 1 --name="River Sensors" --ticker=RIVER --description="Tools that listen to rivers"',
      options: {
        name: { member: 'name', value: 'NAME', help: 'name of the idea' },
        ticker: {
          member: 'ticker',
          value: 'TICKER',
          help: '1–32 of A–Z a–z 0–9 _ . -, not an id such as idea-1 or A1',
        },
        description: { member: 'description', value: 'TEXT', help: 'what it is' },
      },
    },
  },
  example: {
    body: sample.IDEA,
    payload: { ideaId: 'idea-1', slot: 1, ...sample.IDEA, creatorWallet: sample.WALLET, accountEventId: 2 },
    answer: { ideaId: 'idea-1', ticker: 'RAIN' },
  },
});
