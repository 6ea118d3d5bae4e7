// Ideas (specification, Endpoints, Ideas).
import * as v from 'valibot';
import type { ChamberState } from '../../projections/chamber.ts';
import { type IdeaView, ideaViews } from '../../projections/views.ts';
import * as sample from '../moves/samples.ts';
import { jsonResponse, limitParameter, POSITIVE, query } from '../vocabulary/endpoint.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { invalid, parseId, parseInteger } from '../vocabulary/parameters.ts';
import { address, count, did, id, ideaId, timestamp } from '../vocabulary/schemas.ts';
import { findChamber, LIST_LIMIT } from './chambers.ts';
import { json, jsonText } from './response.ts';
import type { Route } from './routes.ts';

const idea: v.GenericSchema<IdeaView> = v.strictObject({
  ideaId,
  ticker: v.string(),
  name: v.string(),
  description: v.string(),
  creatorDid: did,
  tokenAddress: v.pipe(v.nullable(address), v.description('null before deployment')),
  chamberId: id,
  graduatedAt: v.pipe(v.nullable(timestamp), v.description('null before deployment')),
  slot: v.pipe(id, v.description('order of proposal in the chamber, from 1')),
  backers: v.pipe(count, v.description('members who revealed bps > 0 for it')),
  totalBps: v.pipe(count, v.description('sum of the bps that members revealed for it')),
  deployStatus: v.picklist(['none', 'pending', 'submitted', 'deployed', 'failed']),
  deployReason: v.pipe(v.nullable(v.string()), v.description('why the deployment failed')),
});
const ideas = v.array(idea);

const graduated: IdeaView = {
  ideaId: 'idea-1',
  ...sample.IDEA,
  creatorDid: sample.ALICE,
  tokenAddress: sample.TOKEN,
  chamberId: sample.CHAMBER_ID,
  graduatedAt: '2030-01-01T12:50:06.000Z',
  slot: 1,
  backers: 1,
  totalBps: 6000,
  deployStatus: 'deployed',
  deployReason: null,
};
const proposed: IdeaView = { ...graduated, tokenAddress: null, graduatedAt: null, deployStatus: 'none' };

export const ideaRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/chambers/:id/ideas',
    operationId: 'listChamberIdeas',
    tag: 'Ideas',
    summary: 'The ideas of a chamber, by slot',
    responses: { 200: jsonResponse({ description: 'The ideas.', name: 'Ideas', schema: ideas, example: [proposed] }) },
    handle: async (c, context) => jsonText(ideasText((await findChamber(c, context)).state)),
  },
  {
    method: 'get',
    path: '/ideas',
    operationId: 'listIdeas',
    tag: 'Ideas',
    summary: 'Ideas with a token, newest graduation first',
    parameters: [limitParameter(LIST_LIMIT)],
    responses: { 200: jsonResponse({ description: 'The ideas.', name: 'Ideas', schema: ideas, example: [graduated] }) },
    handle: async (c, { forum }) => {
      const limit = parseInteger('limit', c.req.query('limit'), LIST_LIMIT) ?? LIST_LIMIT.fallback;
      return json(await forum.log.listGraduatedIdeas(limit));
    },
  },
  {
    method: 'get',
    path: '/ideas/:ticker',
    operationId: 'getIdea',
    tag: 'Ideas',
    summary: 'One idea by its ticker',
    description: 'Tickers are unique in a chamber only: of several, one with a token comes first, then the newest.',
    parameters: [query('chamberId', 'only of this chamber', POSITIVE)],
    responses: { 200: jsonResponse({ description: 'The idea.', name: 'Idea', schema: idea, example: graduated }) },
    handle: async (c, { forum }) => {
      const ticker = c.req.param('ticker') ?? '';
      const idea = await forum.log.findIdea(ticker, parseChamberId(c.req.query('chamberId')));
      if (idea !== undefined) return json(idea);
      throw new ForumError('FORUM_ERR_NOT_FOUND', `idea ${JSON.stringify(ticker)} not found`);
    },
  },
];

const ideasTexts = new WeakMap<ChamberState, Uint8Array<ArrayBuffer>>();

/** Made once for a state: it may be megabytes, which all readers share, however slowly they read. */
function ideasText(state: ChamberState): Uint8Array<ArrayBuffer> {
  const known = ideasTexts.get(state);
  if (known !== undefined) return known;
  const text = Buffer.from(JSON.stringify(ideaViews(state)));
  ideasTexts.set(state, text);
  return text;
}

function parseChamberId(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const chamberId = parseId(text);
  if (chamberId === undefined) throw invalid('chamberId', 'must be a positive integer');
  return chamberId;
}
