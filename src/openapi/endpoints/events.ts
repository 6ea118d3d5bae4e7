import * as sample from '../../moves/samples.ts';
import { toLine } from '../../vocabulary/events.ts';
import { eventExamples } from '../event-examples.ts';
import { answer, type Endpoint } from './endpoint.ts';
import { after, chamberId, eventId, from, lastEventId, limit, log, type Range, to } from './parameters.ts';

const line = toLine(eventExamples['chamber.joined']);
const ONE_LINE = 'each is one event (see /schemas/events.json)';

export function eventEndpoints(eventsLimit: Range): readonly Endpoint[] {
  return [stream, page(eventsLimit), ...proofs];
}

const stream: Endpoint = {
  method: 'get',
  path: '/chambers/{id}/stream',
  operationId: 'streamEvents',
  tag: 'Events',
  summary: 'Follow a chamber: WebSocket or server-sent events',
  description:
    'With a WebSocket handshake (ws:// or wss:// on the same path) each text message is one event; with `Accept: text/event-stream` each server-sent event has the eventId as id and the event as data. Every event after `after` comes once and in order, then live ones, without end. A reader that was cut off goes on with the eventId of the last one it has.',
  signed: 'no',
  parameters: [
    chamberId,
    after('the last eventId that the reader has: 0 for everything, absent for what comes from now on'),
    log,
    lastEventId,
  ],
  answers: {
    101: { description: `WebSocket: text messages, ${ONE_LINE}.`, headers: ['Log-Id'] },
    200: {
      description: `Server-sent events, ${ONE_LINE}.`,
      headers: ['Log-Id'],
      content: {
        type: 'text/event-stream',
        text: 'server-sent events; lines that begin with a colon keep the connection alive',
        example: `id: 2\ndata: ${line}\n\n`,
      },
    },
  },
  errors: ['FORUM_ERR_NOT_FOUND', 'FORUM_ERR_CONFLICT'],
};

function page(eventsLimit: Range): Endpoint {
  return {
    method: 'get',
    path: '/chambers/{id}/events',
    operationId: 'listEvents',
    tag: 'Events',
    summary: 'A page of a chamber’s log as NDJSON',
    description: 'Ends at the head of the log. An empty answer means that there is nothing after `after`.',
    signed: 'no',
    parameters: [chamberId, after('the eventId before the first one wanted'), limit(eventsLimit), log],
    answers: {
      200: {
        description: `Lines, ${ONE_LINE}.`,
        headers: ['Log-Id'],
        content: { type: 'application/x-ndjson', text: 'one canonical JSON line for each event', example: `${line}\n` },
      },
    },
    errors: ['FORUM_ERR_NOT_FOUND', 'FORUM_ERR_CONFLICT'],
  };
}

const root = { root: sample.ROOT, eventCount: 9 };

const proofs: readonly Endpoint[] = [
  {
    method: 'get',
    path: '/chambers/{id}/merkle-preview',
    operationId: 'previewRoot',
    tag: 'Events',
    summary: 'The Merkle root so far',
    description: 'Over all signed moves, which are events 1 to eventCount. After the reveal deadline it is final.',
    signed: 'no',
    parameters: [chamberId],
    answers: {
      200: { ...answer('MerklePreview', 'The root.', { ...root, asOfEventId: 9 }), headers: ['Log-Id'] },
    },
    errors: ['FORUM_ERR_NOT_FOUND'],
  },
  {
    method: 'get',
    path: '/chambers/{id}/events/{eventId}/proof',
    operationId: 'proveInclusion',
    tag: 'Events',
    summary: 'That an event is in the tree',
    description: 'The proof passes OpenZeppelin’s `MerkleProof.verify`; leaf = keccak256(keccak256(line)).',
    signed: 'no',
    parameters: [chamberId, eventId],
    answers: {
      200: {
        ...answer('InclusionProof', 'The proof.', {
          eventId: 3,
          leaf: sample.PREV,
          proof: [sample.SIBLING, sample.PREV],
          ...root,
        }),
        headers: ['Log-Id'],
      },
    },
    errors: ['FORUM_ERR_NOT_FOUND'],
  },
  {
    method: 'get',
    path: '/chambers/{id}/consistency',
    operationId: 'proveConsistency',
    tag: 'Events',
    summary: 'That a larger tree continues a smaller one',
    signed: 'no',
    parameters: [chamberId, from, to],
    answers: {
      200: {
        ...answer('ConsistencyProof', 'The proof.', {
          fromRoot: sample.PREV,
          toRoot: sample.ROOT,
          proof: [sample.SIBLING],
        }),
        headers: ['Log-Id'],
      },
    },
    errors: ['FORUM_ERR_NOT_FOUND'],
  },
];
