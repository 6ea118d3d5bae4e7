// The Merkle root of a chamber, and inclusion and consistency proofs for readers without the log.
import * as v from 'valibot';
import { foldPeaks, peakRefs, rootOf } from '../crypto/merkle.ts';
import { consistencyProof, inclusionProof, type ReadNodes } from '../crypto/merkle-proof.ts';
import { merklePreview } from '../forum/forum.ts';
import * as sample from '../moves/samples.ts';
import { POSITIVE, query } from '../vocabulary/endpoint.ts';
import { ForumError, invalid } from '../vocabulary/errors.ts';
import { parseId, parseInteger, requireQuery } from '../vocabulary/parameters.ts';
import { hash, id } from '../vocabulary/schemas.ts';
import { toHex } from '../vocabulary/values.ts';
import type { HttpOptions } from './context.ts';
import { json } from './response.ts';
import { type Route, readRoute } from './route.ts';

export const proofRoutes: readonly Route[] = [
  readRoute({
    path: '/chambers/:id/merkle-preview',
    operationId: 'previewRoot',
    tag: 'Events',
    summary: 'The current Merkle root',
    description: 'Covers all signed moves, which are events 1 to eventCount. It is final after the reveal deadline.',
    returns: 'The root.',
    headers: ['Log-Id'],
    name: 'MerklePreview',
    schema: v.strictObject({
      root: hash('Merkle root over the events 1 to eventCount'),
      eventCount: id,
      asOfEventId: id,
    }),
    example: { root: sample.ROOT, eventCount: 9, asOfEventId: 9 },
    handle: async (context, c) =>
      json(merklePreview(await context.forum.findChamber(c.req.param('id'))), logId(context)),
  }),
  readRoute({
    path: '/chambers/:id/events/:eventId/proof',
    operationId: 'proveInclusion',
    tag: 'Events',
    summary: 'Proof that an event is in the tree',
    description: 'The proof passes OpenZeppelin’s `MerkleProof.verify`; leaf = keccak256(keccak256(line)).',
    returns: 'The proof.',
    headers: ['Log-Id'],
    name: 'InclusionProof',
    schema: v.strictObject({
      eventId: id,
      leaf: hash('leaf of the event'),
      proof: v.pipe(v.array(hash('sibling')), v.description('siblings from the leaf up')),
      root: hash('the same as in merkle-preview'),
      eventCount: id,
    }),
    example: {
      eventId: 3,
      leaf: sample.PREV,
      proof: [sample.SIBLING, sample.PREV],
      root: sample.ROOT,
      eventCount: 9,
    },
    handle: async (context, c) => {
      const { state, tree } = await context.forum.findChamber(c.req.param('id'));
      const eventId = requireLeaf(c.req.param('eventId'), state.moveCount);
      const read = nodesOf(context, state.chamberId);
      const [leaf] = await read([{ eventId, level: 0 }]);
      const proof = {
        eventId,
        leaf: toHex(leaf as Uint8Array),
        proof: (await inclusionProof(eventId, state.moveCount, read)).map(toHex),
        root: toHex(rootOf(tree)),
        eventCount: state.moveCount,
      };
      return json(proof, logId(context));
    },
  }),
  readRoute({
    path: '/chambers/:id/consistency',
    operationId: 'proveConsistency',
    tag: 'Events',
    summary: 'Proof that a larger tree extends a smaller one',
    description: 'Proves that the log has only been appended to since a root that you kept.',
    parameters: [
      { ...query('from', 'size of the smaller tree', POSITIVE), example: 2, required: true },
      { ...query('to', 'size of the larger tree', POSITIVE), example: 9, required: true },
    ],
    returns: 'The proof.',
    headers: ['Log-Id'],
    name: 'ConsistencyProof',
    schema: v.strictObject({
      fromRoot: hash('root of the first `from` events'),
      toRoot: hash('root of the first `to` events'),
      proof: v.pipe(v.array(hash('node')), v.description('as in RFC 9162, 2.1.4')),
    }),
    example: { fromRoot: sample.PREV, toRoot: sample.ROOT, proof: [sample.SIBLING] },
    handle: async (context, c) => {
      const { state } = await context.forum.findChamber(c.req.param('id'));
      requireQuery(c.req.url, ['from', 'to']);
      const to = requireSize('to', c.req.query('to'), state.moveCount);
      const from = requireSize('from', c.req.query('from'), to);
      const read = nodesOf(context, state.chamberId);
      const proof = {
        fromRoot: toHex(foldPeaks(await read(peakRefs(from)))),
        toRoot: toHex(foldPeaks(await read(peakRefs(to)))),
        proof: (await consistencyProof(from, to, read)).map(toHex),
      };
      return json(proof, logId(context));
    },
  }),
];

function logId({ forum }: HttpOptions) {
  return { 'Log-Id': forum.store.log.logId };
}

function nodesOf({ forum }: HttpOptions, chamberId: number): ReadNodes {
  return (refs) => forum.store.log.readNodes(chamberId, refs);
}

function requireLeaf(text: string | undefined, moveCount: number): number {
  const eventId = parseId(text);
  if (eventId !== undefined && eventId <= moveCount) return eventId;
  const detail = `event ${JSON.stringify(text)} not found: the tree has events 1 to ${moveCount}`;
  throw new ForumError('FORUM_ERR_NOT_FOUND', detail);
}

function requireSize(name: 'from' | 'to', text: string | undefined, max: number): number {
  const size = parseInteger(name, text, { min: 1, max });
  if (size !== undefined) return size;
  throw invalid(`${name}: required: the number of events in the ${name === 'from' ? 'earlier' : 'later'} tree`);
}
