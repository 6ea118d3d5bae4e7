// Proofs for light readers: that an event is in the tree, and that a later tree continues an earlier one (README, Auditing).
import { foldPeaks, peakRefs, rootOf } from '../crypto/merkle.ts';
import { consistencyProof, inclusionProof, type ReadNodes } from '../crypto/merkle-proof.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { toHex } from '../vocabulary/hex.ts';
import { invalid, parseId, parseInteger } from '../vocabulary/parameters.ts';
import { findChamber } from './chambers.ts';
import type { ForumApp, HttpOptions } from './context.ts';
import { json } from './response.ts';

export function proofRoutes(app: ForumApp, options: HttpOptions): void {
  const { log } = options.forum;
  const headers = { 'Log-Id': log.logId };

  app.get('/chambers/:id/events/:eventId/proof', async (c) => {
    const { state, tree } = await findChamber(c, options);
    const eventId = requireLeaf(c.req.param('eventId'), state.moveCount);
    const read = nodesOf(options, state.chamberId);
    const [leaf] = await read([{ eventId, level: 0 }]);
    return json(
      {
        eventId,
        leaf: toHex(leaf as Uint8Array),
        proof: (await inclusionProof(eventId, state.moveCount, read)).map(toHex),
        root: toHex(rootOf(tree)),
        eventCount: state.moveCount,
      },
      headers,
    );
  });

  app.get('/chambers/:id/consistency', async (c) => {
    const { state } = await findChamber(c, options);
    const to = requireSize('to', c.req.query('to'), state.moveCount);
    const from = requireSize('from', c.req.query('from'), to);
    const read = nodesOf(options, state.chamberId);
    return json(
      {
        fromRoot: toHex(await rootAt(from, read)),
        toRoot: toHex(await rootAt(to, read)),
        proof: (await consistencyProof(from, to, read)).map(toHex),
      },
      headers,
    );
  });
}

function nodesOf({ forum }: HttpOptions, chamberId: number): ReadNodes {
  return (refs) => forum.log.readNodes(chamberId, refs);
}

function requireLeaf(text: string | undefined, moveCount: number): number {
  const eventId = parseId(text);
  if (eventId !== undefined && eventId <= moveCount) return eventId;
  throw new ForumError(
    'FORUM_ERR_NOT_FOUND',
    `the tree holds the events 1 to ${moveCount}, not ${JSON.stringify(text)}`,
  );
}

function requireSize(name: 'from' | 'to', text: string | undefined, max: number): number {
  const size = parseInteger(name, text, { min: 1, max });
  if (size === undefined)
    throw invalid(name, `is required: how many events the ${name === 'from' ? 'earlier' : 'later'} tree has`);
  return size;
}

async function rootAt(size: number, read: ReadNodes): Promise<Uint8Array> {
  return foldPeaks(await read(peakRefs(size)));
}
