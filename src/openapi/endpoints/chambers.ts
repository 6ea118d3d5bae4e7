import * as sample from '../../moves/samples.ts';
import { answer, type Endpoint } from './endpoint.ts';
import { createChamberEndpoint } from './moves.ts';
import { before, chamberId, limit, phase, type Range } from './parameters.ts';

const item = { chamberId: sample.CHAMBER_ID, phase: 'DEBATE', name: 'Weather desk', deadlines: sample.DEADLINES };

export function chamberEndpoints(listLimit: Range): readonly Endpoint[] {
  return [
    {
      method: 'get',
      path: '/chambers',
      operationId: 'listChambers',
      tag: 'Chambers',
      summary: 'List chambers, newest first',
      signed: 'no',
      parameters: [phase, limit(listLimit), before],
      answers: { 200: answer('ChamberItems', 'The chambers.', [{ ...item, memberCount: 2 }]) },
      errors: [],
    },
    {
      method: 'options',
      path: '/chambers',
      operationId: 'preflightChambers',
      tag: 'Chambers',
      summary: 'Preflight of a browser (CORS)',
      description: 'Every path answers it alike.',
      signed: 'no',
      answers: { 204: { description: 'Any origin may call.', headers: ['Access-Control-Allow-Origin'] } },
      errors: [],
    },
    createChamberEndpoint,
    {
      method: 'get',
      path: '/chambers/{id}',
      operationId: 'getChamber',
      tag: 'Chambers',
      summary: 'The full view of a chamber',
      signed: 'no',
      parameters: [chamberId],
      answers: {
        200: answer('Chamber', 'The chamber.', {
          ...item,
          minBackersForGraduation: 1,
          turnSeconds: null,
          members: [sample.ALICE, sample.BOB],
          currentTurnAgent: sample.ALICE,
          ideas: [{ ideaId: 'idea-1', ticker: 'RAIN', creator: sample.ALICE }],
          merkleRoot: null,
          committedAt: null,
          committedTxHash: null,
          commitStatus: 'open',
        }),
      },
      errors: ['FORUM_ERR_NOT_FOUND'],
    },
  ];
}
