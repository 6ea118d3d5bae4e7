// Ideas (specification, Endpoints, Ideas).
import * as v from 'valibot';
import type { ChamberState } from '../../projections/chamber.ts';
import { type IdeaView, ideaViews } from '../../projections/views.ts';
import * as sample from '../moves/samples.ts';
import { LIST_LIMIT, limitParameter, POSITIVE, query } from '../vocabulary/endpoint.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { invalid, parseId, parseInteger, requireQuery } from '../vocabulary/parameters.ts';
import { address, count, did, id, ideaId, timestamp } from '../vocabulary/schemas.ts';
import { findChamber } from './chambers.ts';
import { type Route, readRoute } from './context.ts';
import { JSON_HEADERS, json } from './response.ts';

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
  readRoute({
    path: '/chambers/:id/ideas',
    operationId: 'listChamberIdeas',
    tag: 'Ideas',
    summary: 'The ideas of a chamber, by slot',
    returns: 'The ideas.',
    name: 'Ideas',
    schema: ideas,
    example: [proposed],
    handle: async (context, c) => {
      const { state } = await findChamber(c, context);
      return new Response(ideasText(state), { headers: JSON_HEADERS });
    },
  }),
  readRoute({
    path: '/ideas',
    operationId: 'listIdeas',
    tag: 'Ideas',
    summary: 'Ideas with a token, newest graduation first',
    parameters: [limitParameter(LIST_LIMIT)],
    returns: 'The ideas.',
    name: 'Ideas',
    schema: ideas,
    example: [graduated],
    handle: async ({ forum }, c) => {
      requireQuery(c.req.url, ['limit']);
      const limit = parseInteger('limit', c.req.query('limit'), LIST_LIMIT) ?? LIST_LIMIT.fallback;
      return json(await forum.log.listGraduatedIdeas(limit));
    },
  }),
  readRoute({
    path: '/ideas/:ticker',
    operationId: 'getIdea',
    tag: 'Ideas',
    summary: 'One idea by its ticker',
    description: 'Tickers are unique in a chamber only: of several, one with a token comes first, then the newest.',
    parameters: [query('chamberId', 'only of this chamber', POSITIVE)],
    returns: 'The idea.',
    name: 'Idea',
    schema: idea,
    example: graduated,
    handle: async ({ forum }, c) => {
      const ticker = c.req.param('ticker') ?? '';
      requireQuery(c.req.url, ['chamberId']);
      const idea = await forum.log.findIdea(ticker, parseChamberId(c.req.query('chamberId')));
      if (idea !== undefined) return json(idea);
      throw new ForumError('FORUM_ERR_NOT_FOUND', `idea ${JSON.stringify(ticker)} not found`);
    },
  }),
];

const ideasTexts = new WeakMap<ChamberState, Uint8Array<ArrayBuffer>>();

/** JSON, made once for a state: it may be megabytes, which all readers share, however slowly they read. */
function ideasText(state: ChamberState): Uint8Array<ArrayBuffer> {
  const text = ideasTexts.get(state) ?? Buffer.from(JSON.stringify(ideaViews(state)));
  ideasTexts.set(state, text);
  return text;
}

function parseChamberId(text: string | undefined): number | undefined {
  const chamberId = parseId(text);
  if (text !== undefined && chamberId === undefined) throw invalid('chamberId', 'must be a positive integer');
  return chamberId;
}
