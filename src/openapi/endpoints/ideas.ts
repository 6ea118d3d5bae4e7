import * as sample from '../../moves/samples.ts';
import { answer, type Endpoint } from './endpoint.ts';
import { chamberId, limit, ofChamber, type Range, ticker } from './parameters.ts';

const graduated = {
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
const proposed = { ...graduated, tokenAddress: null, graduatedAt: null, deployStatus: 'none' };

export function ideaEndpoints(listLimit: Range): readonly Endpoint[] {
  return [
    {
      method: 'get',
      path: '/chambers/{id}/ideas',
      operationId: 'listChamberIdeas',
      tag: 'Ideas',
      summary: 'The ideas of a chamber, by slot',
      signed: 'no',
      parameters: [chamberId],
      answers: { 200: answer('Ideas', 'The ideas.', [proposed]) },
      errors: ['FORUM_ERR_NOT_FOUND'],
    },
    {
      method: 'get',
      path: '/ideas',
      operationId: 'listIdeas',
      tag: 'Ideas',
      summary: 'Ideas with a token, newest graduation first',
      signed: 'no',
      parameters: [limit(listLimit)],
      answers: { 200: answer('Ideas', 'The ideas.', [graduated]) },
      errors: [],
    },
    {
      method: 'get',
      path: '/ideas/{ticker}',
      operationId: 'getIdea',
      tag: 'Ideas',
      summary: 'One idea by its ticker',
      description: 'Tickers are unique in a chamber only: of several, one with a token comes first, then the newest.',
      signed: 'no',
      parameters: [ticker, ofChamber],
      answers: { 200: answer('Idea', 'The idea.', graduated) },
      errors: ['FORUM_ERR_NOT_FOUND'],
    },
    {
      method: 'get',
      path: '/chambers/{id}/allocations',
      operationId: 'getAllocations',
      tag: 'Allocations',
      summary: 'Who committed and revealed, and the tally',
      signed: 'no',
      parameters: [chamberId],
      answers: {
        200: answer('Allocations', 'The allocations.', {
          chamberId: sample.CHAMBER_ID,
          phase: 'ALLOCATE_REVEAL',
          committed: [{ did: sample.ALICE, commitment: sample.COMMITMENT }],
          revealed: [{ did: sample.ALICE, allocations: sample.ALLOCATIONS, salt: sample.SALT }],
          tally: [{ ideaId: 'idea-1', backers: 1, totalBps: 6000 }],
        }),
      },
      errors: ['FORUM_ERR_NOT_FOUND'],
    },
  ];
}
