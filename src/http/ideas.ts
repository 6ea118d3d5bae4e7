// Ideas (specification, Endpoints, Ideas).
import { setImmediate } from 'node:timers/promises';
import * as v from 'valibot';
import { type ChamberIdeaView, type IdeaView, ideaViews } from '../../projections/views.ts';
import type { Store } from '../log/store.ts';
import * as sample from '../moves/samples.ts';
import { LIST_LIMIT, limitParameter, POSITIVE, query } from '../vocabulary/endpoint.ts';
import { ForumError, invalid } from '../vocabulary/errors.ts';
import { parseId, parseInteger, requireQuery } from '../vocabulary/parameters.ts';
import { address, count, did, id, ideaId, timestamp } from '../vocabulary/schemas.ts';
import { json, jsonText } from './response.ts';
import { type Route, readRoute } from './route.ts';

const members = {
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
  version: v.pipe(id, v.description('version of name and description: 1 is the proposal, and each amendment adds one')),
  withdrawn: v.pipe(
    v.boolean(),
    v.description('whether the proposer has withdrawn the idea, so that no allocation may name it'),
  ),
  stances: v.pipe(
    v.strictObject({ for: count, against: count, undecided: count, outdated: count }),
    v.description('members by their latest stance in the debate; `outdated`: on an earlier version'),
  ),
};
const idea: v.GenericSchema<IdeaView> = v.strictObject(members);
const ideas = v.array(idea);
const chamberIdea: v.GenericSchema<ChamberIdeaView> = v.strictObject({
  ...members,
  versions: v.pipe(
    v.array(v.strictObject({ version: id, eventId: id, ts: timestamp })),
    v.description('the events with the texts: the proposal, then the amendments'),
  ),
});

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
  version: 1,
  withdrawn: false,
  stances: { for: 1, against: 0, undecided: 1, outdated: 0 },
};
const proposed: ChamberIdeaView = {
  ...graduated,
  tokenAddress: null,
  graduatedAt: null,
  deployStatus: 'none',
  versions: [{ version: 1, eventId: 4, ts: '2030-01-01T12:12:00.000Z' }],
};

export const ideaRoutes: readonly Route[] = [
  readRoute({
    path: '/chambers/:id/ideas',
    operationId: 'listChamberIdeas',
    tag: 'Ideas',
    summary: 'The ideas of a chamber, by slot',
    description: 'In every phase; `backers` and `totalBps` count the reveals up to now.',
    returns: 'The ideas.',
    name: 'ChamberIdeas',
    schema: v.array(chamberIdea),
    example: [proposed],
    handle: async ({ forum }, c) => {
      const { state } = await forum.findChamber(c.req.param('id'));
      return listResponse(ideaViews(state));
    },
  }),
  readRoute({
    path: '/ideas',
    operationId: 'listIdeas',
    tag: 'Ideas',
    summary: 'Ideas with a token, newest graduation first',
    description:
      'From all chambers. An idea graduates when enough members allocate to it, and is listed once its token is deployed.',
    parameters: [limitParameter(LIST_LIMIT)],
    returns: 'The ideas.',
    name: 'Ideas',
    schema: ideas,
    example: [graduated],
    handle: async ({ forum }, c) => {
      requireQuery(c.req.url, ['limit']);
      const limit = parseInteger('limit', c.req.query('limit'), LIST_LIMIT) ?? LIST_LIMIT.fallback;
      return listResponse(graduatedIdeas(forum.store, limit));
    },
  }),
  readRoute({
    path: '/ideas/:ticker',
    operationId: 'getIdea',
    tag: 'Ideas',
    summary: 'One idea by its ticker',
    description:
      'Tickers are unique within a chamber. If several ideas match, one with a token comes first, then the newest.',
    parameters: [query('chamberId', 'only an idea of this chamber', POSITIVE)],
    returns: 'The idea.',
    name: 'Idea',
    schema: idea,
    example: graduated,
    handle: async ({ forum }, c) => {
      const ticker = c.req.param('ticker') ?? '';
      requireQuery(c.req.url, ['chamberId']);
      const idea = await forum.store.lists.findIdea(ticker, parseChamberId(c.req.query('chamberId')));
      if (idea !== undefined) return json(idea);
      throw new ForumError('FORUM_ERR_NOT_FOUND', `idea ${JSON.stringify(ticker)} not found`);
    },
  }),
];

/** An idea takes up to 25 KB. */
const IDEAS_PER_PAGE = 10;

/** Each page waits in the read queue, so that hundreds of concurrent requests do not delay a move. */
async function* graduatedIdeas({ log, lists }: Store, limit: number): AsyncGenerator<IdeaView> {
  let after: IdeaView | undefined;
  for (let left = limit; left > 0; left -= IDEAS_PER_PAGE) {
    await log.readQueue.wait('foreground');
    const page = await lists.listGraduatedIdeas({ limit: Math.min(left, IDEAS_PER_PAGE), after });
    yield* page;
    if (page.length < IDEAS_PER_PAGE) return;
    after = page.at(-1);
  }
}

type Ideas = Iterable<IdeaView> | AsyncIterable<IdeaView>;

/** Sends a list that fits in one chunk without a stream. A failure before the end of the first chunk becomes an error response. */
async function listResponse(ideas: Ideas): Promise<Response> {
  const chunks = ideasText(ideas);
  const first = await chunks.next();
  const body = first.done ? first.value : ReadableStream.from(withRest(first.value, chunks));
  return jsonText(body);
}

async function* withRest(first: Buffer, rest: AsyncGenerator<Buffer, Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield yield* rest;
}

const CHUNK_CHARS = 65_536;

/**
 * Yields the JSON in chunks and returns the last one, because the ideas of a full chamber take megabytes. A slow reader keeps one
 * chunk in memory, and other work runs between chunks.
 */
async function* ideasText(ideas: Ideas): AsyncGenerator<Buffer, Buffer> {
  let chunk = '[';
  let separator = '';
  for await (const idea of ideas) {
    chunk += separator + JSON.stringify(idea);
    separator = ',';
    if (chunk.length < CHUNK_CHARS) continue;
    yield Buffer.from(chunk);
    chunk = '';
    await setImmediate();
  }
  return Buffer.from(`${chunk}]`);
}

function parseChamberId(text: string | undefined): number | undefined {
  const chamberId = parseId(text);
  if (text !== undefined && chamberId === undefined) throw invalid('chamberId: must be a positive integer');
  return chamberId;
}
