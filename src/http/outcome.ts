// GET /chambers/:id/outcome (extension): the result of a chamber. Anybody can compute the same bytes from its lines.
import * as v from 'valibot';
import { type OutcomeView, outcomeOf, outcomeText } from '../../projections/outcome.ts';
import * as sample from '../moves/samples.ts';
import { IMMUTABLE_TEXTS } from '../vocabulary/endpoint.ts';
import { address, count, did, hash, id, ideaId, timestamp } from '../vocabulary/schemas.ts';
import type { Millis } from '../vocabulary/values.ts';
import { respondDocument } from './compression.ts';
import { HttpError, JSON_HEADERS } from './response.ts';
import { readRoute } from './route.ts';

const outcome: v.GenericSchema<OutcomeView> = v.strictObject({
  chamberId: id,
  name: v.string(),
  topic: v.pipe(v.nullable(v.string()), v.description('the topic of the chamber')),
  createdBy: did,
  quorate: v.pipe(
    v.nullable(v.boolean()),
    v.description('whether the required number of members joined; null: no number was required'),
  ),
  minBackersForGraduation: id,
  members: v.pipe(
    v.array(
      v.strictObject({
        did,
        label: v.nullable(v.string()),
        wallet: v.nullable(address),
        walletProven: v.nullable(v.boolean()),
      }),
    ),
    v.description('in turn order, as they joined; null: not in the lines'),
  ),
  ideas: v.pipe(
    v.array(
      v.strictObject({
        ideaId,
        ticker: v.string(),
        name: v.string(),
        proposer: did,
        backers: v.pipe(count, v.description('members who revealed bps > 0 for it')),
        totalBps: v.pipe(count, v.description('sum of the bps that members revealed for it')),
        shareBps: v.pipe(count, v.description('its share of all bps allocated to ideas, rounded down')),
        backersMissing: v.pipe(count, v.description('how many more backers it would have needed to graduate')),
        graduated: v.boolean(),
        withdrawn: v.boolean(),
        version: v.pipe(id, v.description('version of the name: 1 is the proposal')),
        tokenAddress: v.pipe(v.nullable(address), v.description('null without a token')),
        failure: v.pipe(v.nullable(v.string()), v.description('why a graduate has no token')),
      }),
    ),
    v.description('by slot'),
  ),
  abstainedBps: v.pipe(v.number(), v.integer(), v.description('10000 × revealed − the sum of all totalBps')),
  committed: v.pipe(count, v.description('members who committed an allocation')),
  revealed: v.pipe(count, v.description('members who revealed it')),
  merkleRoot: hash('root over the moves of the chamber'),
  committedTxHash: hash('transaction that committed the root'),
  endedAt: v.pipe(timestamp, v.description('time of its block')),
  lastEventId: v.pipe(id, v.description('the event that settled the chamber')),
});

/** Mining a block takes a few seconds. Phases can end early, so clients must not wait for a distant deadline. */
const RETRY_SECONDS = { chain: 3, max: 30 } as const;

function retrySeconds(until: Millis | null, now: Millis): number {
  if (until === null) return RETRY_SECONDS.chain;
  return Math.min(Math.max(1, Math.ceil((until - now) / 1_000)), RETRY_SECONDS.max);
}

export const outcomeRoute = readRoute({
  path: '/chambers/:id/outcome',
  operationId: 'getOutcome',
  tag: 'Chambers',
  summary: 'The result of a chamber: allocations, graduates, tokens, root',
  description:
    'Canonical JSON (RFC 8785), a function of the chamber’s lines alone: `chambers audit LINES --outcome` prints the same bytes. Until the root is on the chain and each graduate has its token or a failure, the response is 409: it says what the chamber is waiting for, and `Retry-After` says when to retry. After that, the outcome never changes.',
  returns: 'The outcome.',
  headers: ['Log-Id', 'Cache-Control', 'ETag'],
  name: 'Outcome',
  schema: outcome,
  example: {
    chamberId: sample.CHAMBER_ID,
    name: 'Weather desk',
    topic: null,
    createdBy: sample.ALICE,
    quorate: null,
    minBackersForGraduation: 1,
    members: [{ did: sample.ALICE, label: 'Ada', wallet: sample.WALLET, walletProven: true }],
    ideas: [
      {
        ideaId: 'idea-1',
        ticker: sample.IDEA.ticker,
        name: sample.IDEA.name,
        proposer: sample.ALICE,
        backers: 1,
        totalBps: 6000,
        shareBps: 10_000,
        backersMissing: 0,
        graduated: true,
        withdrawn: false,
        version: 1,
        tokenAddress: sample.TOKEN,
        failure: null,
      },
    ],
    abstainedBps: 4000,
    committed: 1,
    revealed: 1,
    merkleRoot: sample.ROOT,
    committedTxHash: sample.TX_HASH,
    endedAt: '2030-01-01T12:50:03.000Z',
    lastEventId: 13,
  },
  errors: ['FORUM_ERR_CONFLICT'],
  errorHeaders: { FORUM_ERR_CONFLICT: ['Retry-After'] },
  handle: async ({ forum, responses }, c) => {
    const cache = responses.open();
    const { state } = await forum.findChamber(c.req.param('id'));
    const { chamberId, settlement } = state;
    const body = await cache.body(['outcome', chamberId, settlement.lastResultEventId ?? 0], () => {
      const now = forum.now();
      const outcome = outcomeOf(state, now);
      if ('view' in outcome) return outcomeText(outcome.view);
      const detail = `chamber ${chamberId} is waiting for ${outcome.waitsFor}`;
      throw new HttpError('FORUM_ERR_CONFLICT', detail, { 'Retry-After': `${retrySeconds(outcome.until, now)}` });
    });
    const headers = { ...JSON_HEADERS, 'Log-Id': forum.store.log.logId, 'Cache-Control': IMMUTABLE_TEXTS };
    // Outcomes are too small for Brotli to be worth its time.
    return respondDocument(c, { body, headers, encodings: ['gzip'] });
  },
});
