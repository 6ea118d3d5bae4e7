// Chambers and the moves in them (specification, Endpoints, Chambers and Allocations).
import { allocationsView, chamberView } from '../../projections/views.ts';
import { type Chamber, merklePreview } from '../forum/forum.ts';
import { noChamber } from '../forum/submissions.ts';
import { MOVE_PATHS } from '../vocabulary/commands.ts';
import { invalid, parseCursor, parseId, parseInteger } from '../vocabulary/parameters.ts';
import { isPhase, PHASES, type Phase } from '../vocabulary/values.ts';
import { moveAnswer } from './answers.ts';
import type { Authenticator } from './authenticate.ts';
import { readBody } from './body.ts';
import type { ForumApp, ForumContext, HttpOptions } from './context.ts';
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
    return json(moveAnswer(await forum.createChamber(body.json, caller)));
  });

  for (const [operation, path] of Object.entries(MOVE_PATHS) as [keyof typeof MOVE_PATHS, string][]) {
    app.post(`/chambers/:id/${path}`, async (c) => {
      const body = await readBody(c, maxBodyBytes);
      const caller = await auth.authenticate(c, body);
      const chamberId = parseId(c.req.param('id'));
      return json(moveAnswer(await forum.move({ operation, chamberId, body: body.json, caller })));
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
  if (chamber === undefined) throw noChamber();
  return chamber;
}

function parsePhase(text: string | undefined): Phase | undefined {
  if (text === undefined || isPhase(text)) return text;
  throw invalid('phase', `must be one of ${PHASES.join(', ')}`);
}
