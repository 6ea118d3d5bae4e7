// The whole log as a tiled transparency log (C2SP tlog-tiles), and proofs that an event is in it (C2SP tlog-proof).
import { parseDid } from '../crypto/did-key.ts';
import { inclusionProof } from '../crypto/merkle-proof.ts';
import type { StreamId } from '../log/stream-id.ts';
import * as sample from '../moves/samples.ts';
import { formatTlogProof } from '../tlog/proof.ts';
import { ENTRIES, formatEntries, parseTilePath, type Tile } from '../tlog/tile.ts';
import { nodesOfTiles } from '../tlog/tiled-tree.ts';
import { HASH_BYTES, TREE } from '../tlog/tree.ts';
import { EVENTS_LIMIT, IMMUTABLE, limitParameter, NATURAL, query } from '../vocabulary/endpoint.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { type Bounds, parseCursor, parseId, parseInteger, requireQuery } from '../vocabulary/parameters.ts';
import type { ForumContext, HttpOptions } from './context.ts';
import { CORS_HEADERS } from './response.ts';
import { getRoute, type Route } from './route.ts';

/** After an append, a new checkpoint is published within a second or two. */
const FRESH = 'public, max-age=1';

/** How many stubs a response may have; the size of a page limits it too. */
const WITHHELD_LIMIT = { min: 1, max: 1_000, fallback: 1_000 } as const;

const TEXT = 'text/plain; charset=utf-8';
const BYTES = 'application/octet-stream';
const NDJSON = 'application/x-ndjson; charset=utf-8';

const proof = {
  returns: 'The proof.',
  content: { type: 'text/plain', description: 'a tlog-proof', example: () => sample.TLOG_PROOF },
} as const;

export const logTreeRoutes: readonly Route[] = [
  getRoute({
    path: '/log/:logId/checkpoint',
    operationId: 'getCheckpoint',
    tag: 'Log',
    summary: 'The newest checkpoint: size and root of the tree over all lines, signed',
    description:
      'A signed note (C2SP tlog-checkpoint): origin, size and root of the RFC 6962 tree, signed by `checkpointKey` of `GET /`, and cosigned by witnesses if there are any. For the log that this one replaced, the last checkpoint.',
    returns: 'The checkpoint.',
    content: { type: 'text/plain', description: 'a signed note', example: () => sample.CHECKPOINT },
    handle: async ({ forum, checkpoint }, c) => {
      const { log, tree } = forum.store;
      const logId = c.req.param('logId');
      const stored = logId === log.logId ? await checkpoint() : await tree.checkpoint(logId);
      if (stored === undefined) throw notFound('no checkpoint of this log has been published');
      return respond(stored.note, TEXT, FRESH);
    },
  }),
  getRoute({
    path: '/log/:logId/tile/:tile{.+}',
    operationId: 'getTile',
    tag: 'Log',
    summary: 'A tile of the tree, or a bundle of its entries',
    description:
      'Paths and content are those of C2SP tlog-tiles: `tile/<level>/<index>[.p/<width>]` and `tile/entries/<index>[.p/<width>]`. An entry is the 32-byte leaf of a line, keccak256(keccak256(line)). Tiles never change.',
    returns: 'The tile.',
    headers: ['Cache-Control'],
    content: { type: 'application/octet-stream', description: 'hashes, or entries', example: () => '' },
    handle: async (context, c) => {
      requireLog(context, c);
      // The raw path with %2F decoded, because generated clients encode slashes in parameters.
      const { pathname } = new URL(c.req.url);
      const path = pathname.slice(`/log/${c.req.param('logId')}/`.length).replaceAll(/%2f/gi, '/');
      const tile = parseTilePath(path);
      const bytes = tile && (await readTile(context, tile));
      if (bytes === undefined) throw notFound('the tree has no such tile');
      return respond(bytes, BYTES, IMMUTABLE);
    },
  }),
  getRoute({
    path: '/log/:logId/index',
    operationId: 'listLeaves',
    tag: 'Log',
    summary: 'The event of each leaf of the tree',
    description: 'Ends at the newest checkpoint. `did` is the account of an event outside all chambers.',
    parameters: [
      { ...query('after', 'number of leaves to skip: the index of the first one returned', NATURAL), example: 0 },
      limitParameter(EVENTS_LIMIT),
    ],
    returns: 'Lines of `{ index, chamberId, did, eventId }`, one for each leaf.',
    content: {
      type: 'application/x-ndjson',
      description: 'one JSON object for each leaf',
      example: () => lineOf(0, { stream: sample.ALICE, eventId: 1 }),
    },
    handle: async (context, c) => {
      requireLog(context, c);
      const { after, limit } = parseRange(c, EVENTS_LIMIT);
      const { tree } = context.forum.store;
      const size = (await context.checkpoint())?.size ?? 0;
      const wanted = Math.max(0, Math.min(limit, size - after));
      const events = wanted === 0 ? [] : await tree.readEvents(after, wanted);
      const lines = events.map((event, i) => lineOf(after + i, event));
      return respond(lines.join(''), NDJSON, events.length === limit ? IMMUTABLE : FRESH);
    },
  }),
  getRoute({
    path: '/log/:logId/withheld',
    operationId: 'listWithheld',
    tag: 'Log',
    summary: 'The stubs of all withheld lines, in the order of withholding',
    description:
      'A stub replaces the line of an event whose texts the service has withheld; it states the leaf of that line and is signed. Mirrors, caches and backups follow this list. To continue, add the number of lines in the response to `after`.',
    parameters: [{ ...query('after', 'number of stubs to skip', NATURAL), example: 0 }, limitParameter(WITHHELD_LIMIT)],
    returns: 'Stubs, each a ChamberEvent or an AccountEvent. The response is empty if no stub follows.',
    headers: ['Log-Id'],
    content: {
      type: 'application/x-ndjson',
      description: 'one canonical JSON line for each stub',
      example: () => `${sample.STUB}\n`,
    },
    handle: async (context, c) => {
      requireLog(context, c);
      const { after, limit } = parseRange(c, WITHHELD_LIMIT);
      const { log, withholding } = context.forum.store;
      const { ndjson } = await withholding.read(after, limit);
      const response = respond(new Uint8Array(ndjson), NDJSON, FRESH);
      response.headers.set('Log-Id', log.logId);
      return response;
    },
  }),
  getRoute({
    path: '/chambers/:id/events/:eventId/tlog-proof',
    operationId: 'proveLogged',
    tag: 'Log',
    summary: 'Proof that an event of a chamber is in the log',
    description: 'Contains the newest checkpoint, so that it can be verified offline (C2SP tlog-proof).',
    ...proof,
    handle: async (context, c) => respondProof(context, parseId(c.req.param('id')), c),
  }),
  getRoute({
    path: '/agents/:did/events/:eventId/tlog-proof',
    operationId: 'proveAccountLogged',
    tag: 'Log',
    summary: 'Proof that an event of an account is in the log',
    description: 'The same for the events of an account.',
    ...proof,
    handle: async (context, c) => {
      const did = c.req.param('did') ?? '';
      return respondProof(context, parseDid(did) === undefined ? undefined : did, c);
    },
  }),
];

function requireLog({ forum }: HttpOptions, c: ForumContext): void {
  if (c.req.param('logId') !== forum.store.log.logId) throw notFound('this log is not published here');
}

function parseRange({ req }: ForumContext, bounds: Bounds & { readonly fallback: number }) {
  requireQuery(req.url, ['after', 'limit']);
  const after = parseCursor('after', req.query('after')) ?? 0;
  return { after, limit: parseInteger('limit', req.query('limit'), bounds) ?? bounds.fallback };
}

function notFound(detail: string): ForumError {
  return new ForumError('FORUM_ERR_NOT_FOUND', detail);
}

function respond(body: string | Uint8Array<ArrayBuffer>, type: string, cacheControl: string): Response {
  return new Response(body, { headers: { ...CORS_HEADERS, 'Content-Type': type, 'Cache-Control': cacheControl } });
}

/** A narrower tile is a prefix of the stored one. */
async function readTile({ forum }: HttpOptions, tile: Tile): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const { level, index, width } = tile;
  const [stored] = await forum.store.tree.readTiles([{ level, index }]);
  const bytes = stored?.subarray(0, width * HASH_BYTES);
  if (bytes?.length !== width * HASH_BYTES) return undefined;
  return new Uint8Array(level === ENTRIES ? formatEntries(bytes) : bytes);
}

function lineOf(index: number, { stream, eventId }: { readonly stream: StreamId; readonly eventId: number }): string {
  const [chamberId, did] = typeof stream === 'number' ? [stream, null] : [null, stream];
  return `${JSON.stringify({ index, chamberId, did, eventId })}\n`;
}

async function respondProof(context: HttpOptions, stream: StreamId | undefined, c: ForumContext): Promise<Response> {
  const { log, tree } = context.forum.store;
  const eventId = parseId(c.req.param('eventId'));
  const isNamed = stream !== undefined && eventId !== undefined;
  const place = isNamed ? await log.placeOf(stream, eventId) : undefined;
  if (place === undefined) throw notFound('event not found');
  const checkpoint = await context.checkpoint();
  if (checkpoint === undefined || checkpoint.size < place) {
    throw notFound('no checkpoint covers the event yet: retry in a few seconds');
  }
  const { size, note } = checkpoint;
  const hashes = await inclusionProof(place, size, nodesOfTiles(tree.readTiles), TREE.hashNodes);
  return respond(formatTlogProof({ index: place - 1, hashes, note }), TEXT, FRESH);
}
