// The HTTP edge put together: routes, preflight, errors. Each request is a straight line: body, caller, forum, response.
import { Hono } from 'hono';
import { ForumError } from '../vocabulary/errors.ts';
import { accountRoutes } from './accounts.ts';
import { Authenticator } from './authenticate.ts';
import { allocationRoutes, chamberRoutes } from './chambers.ts';
import type { ForumApp, ForumContext, ForumEnv, HttpOptions } from './context.ts';
import { ideaRoutes } from './ideas.ts';
import { moveRoutes } from './moves.ts';
import { proofRoutes } from './proofs.ts';
import { errorResponse, preflight, requestIdOf } from './response.ts';
import { addRoutes, allowedMethods, type Route } from './routes.ts';
import { serviceRoutes } from './service.ts';

/** Described for one path; every path has it. */
const preflightRoute: Route = {
  method: 'options',
  path: '/chambers',
  operationId: 'preflightChambers',
  tag: 'Chambers',
  summary: 'Preflight of a browser (CORS)',
  description: 'The same on every path.',
  responses: { 204: { description: 'Any origin may call.', headers: ['Access-Control-Allow-Origin'] } },
  handle: preflight,
};

export const httpRoutes: readonly Route[] = [
  ...serviceRoutes,
  ...accountRoutes,
  ...chamberRoutes,
  preflightRoute,
  ...moveRoutes,
  ...allocationRoutes,
  ...ideaRoutes,
  ...proofRoutes,
];

export function createApp(options: HttpOptions): ForumApp {
  const app = new Hono<ForumEnv>();
  app.options('*', preflight);
  addRoutes(app, httpRoutes, { ...options, auth: new Authenticator(options) });
  app.notFound((c) => errorResponse(noRoute(app, c)));
  app.onError((error, c) => failed(error, c, options));
  return app;
}

function noRoute(app: ForumApp, c: ForumContext): ForumError {
  const allowed = allowedMethods(app, c.req.path);
  if (allowed.length === 0) return new ForumError('FORUM_ERR_NOT_FOUND', `${c.req.path} not found`);
  const allow = allowed.join(', ');
  return new ForumError('FORUM_ERR_METHOD', `${c.req.path} takes ${allow}, not ${c.req.method}`, {
    headers: { Allow: allow },
  });
}

/** A failure of ours is logged with an id, which the response carries so that the caller can ask about it. */
function failed(error: Error, c: ForumContext, { onFailure }: HttpOptions): Response {
  const response = errorResponse(error);
  const { status } = response;
  if (status < 500) return response;
  const requestId = requestIdOf(c.env.incoming ?? c.req.raw);
  onFailure({ requestId, method: c.req.method, path: c.req.path, status, error });
  response.headers.set('X-Request-Id', requestId);
  return response;
}
