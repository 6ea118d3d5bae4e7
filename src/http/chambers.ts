// Chambers and the moves in them (specification, Endpoints, Chambers and Allocations).
import { allocationsView, chamberView } from '../../projections/views.ts';
import { chamberNotFound } from '../forum/commands.ts';
import { type Chamber, merklePreview } from '../forum/forum.ts';
import { createChamber } from '../moves/create-chamber.ts';
import { type AnyChamberMove, type ChamberMoveOperation, chamberMoves } from '../moves/registry.ts';
import { invalid, parseCursor, parseId, parseInteger } from '../vocabulary/parameters.ts';
import { isPhase, PHASES, type Phase } from '../vocabulary/values.ts';
import type { Authenticator } from './authenticate.ts';
import type { ForumApp, ForumContext, HttpOptions } from './context.ts';
import { readBody } from './request.ts';
import { json } from './response.ts';

export const LIST_LIMIT = { min: 1, max: 200 } as const;
export const LIST_LIMIT_DEFAULT = 50;

export function chamberRoutes(app: ForumApp, auth: Authenticator, options: HttpOptions): void {
  const { forum, maxBodyBytes } = options;

  app.get('/chambers', async (c) => {
    const phase = parsePhase(c.req.query('phase'));
    const limit = parseInteger('limit', c.req.query('limit'), LIST_LIMIT) ?? LIST_LIMIT_DEFAULT;
    const before = parseCursor('before', c.req.query('before'));
    return json(await forum.chambers({ phase, limit, before }));
  });

  app.post('/chambers', async (c) => {
    const body = await readBody(c, maxBodyBytes);
    const caller = await auth.authenticate(c, body);
    const event = await forum.submit({ operation: 'createChamber', body: body.json, caller });
    return json(createChamber.answer(event as Parameters<typeof createChamber.answer>[0]));
  });

  for (const [operation, move] of Object.entries(chamberMoves) as [ChamberMoveOperation, AnyChamberMove][]) {
    app.post(move.path, async (c) => {
      const body = await readBody(c, maxBodyBytes);
      const caller = await auth.authenticate(c, body);
      const chamberId = parseId(c.req.param('id'));
      return json(move.answer(await forum.submit({ operation, chamberId, body: body.json, caller })));
    });
  }

  app.get('/chambers/:id', async (c) => {
    const { state } = await findChamber(c, options);
    return json(chamberView(state, forum.now()));
  });

  app.get('/chambers/:id/allocations', async (c) => {
    const { state } = await findChamber(c, options);
    return json(allocationsView(state, forum.now()));
  });

  app.get('/chambers/:id/merkle-preview', async (c) => {
    const chamber = await findChamber(c, options);
    return json(merklePreview(chamber), { 'Log-Id': forum.log.logId });
  });
}

/** The chamber of the path; throws FORUM_ERR_NOT_FOUND. */
export async function findChamber(c: ForumContext, { forum }: HttpOptions): Promise<Chamber> {
  const chamberId = parseId(c.req.param('id'));
  const chamber = chamberId === undefined ? undefined : await forum.chamber(chamberId);
  if (chamber === undefined) throw chamberNotFound();
  return chamber;
}

function parsePhase(text: string | undefined): Phase | undefined {
  if (text === undefined || isPhase(text)) return text;
  throw invalid('phase', `must be one of ${PHASES.join(', ')}`);
}
