// The HTTP edge put together: routes, preflight, refusals. Each request is a straight line: body, caller, forum, answer.
import { Hono } from 'hono';
import { ForumError } from '../vocabulary/errors.ts';
import { accountRoutes } from './accounts.ts';
import { Authenticator } from './authenticate.ts';
import { chamberRoutes } from './chambers.ts';
import type { ForumApp, ForumContext, ForumEnv, HttpOptions } from './context.ts';
import { ideaRoutes } from './ideas.ts';
import { proofRoutes } from './proofs.ts';
import { errorResponse, preflight, requestIdOf } from './response.ts';
import { allowedMethods } from './routes.ts';
import { serviceRoutes } from './service.ts';

export function createApp(options: HttpOptions): ForumApp {
  const app = new Hono<ForumEnv>();
  const auth = new Authenticator(options);
  app.options('*', preflight);
  serviceRoutes(app, options);
  accountRoutes(app, auth, options);
  chamberRoutes(app, auth, options);
  ideaRoutes(app, options);
  proofRoutes(app, options);
  app.notFound((c) => errorResponse(noRoute(app, c)));
  app.onError((error, c) => refuse(error, c, options));
  return app;
}

/** A failure of ours is logged under an id that its answer tells, so that a caller can ask about it. */
function refuse(error: Error, c: ForumContext, { onFailure }: HttpOptions): Response {
  const response = errorResponse(error);
  const { status } = response;
  if (status < 500) return response;
  const requestId = requestIdOf(c.env.incoming ?? c.req.raw);
  onFailure({ requestId, method: c.req.method, path: c.req.path, status, error });
  response.headers.set('X-Request-Id', requestId);
  return response;
}

function noRoute(app: ForumApp, c: ForumContext): ForumError {
  const allowed = allowedMethods(app, c.req.path);
  if (allowed.length === 0) return new ForumError('FORUM_ERR_NOT_FOUND', `there is no ${c.req.path}`);
  const allow = allowed.join(', ');
  return new ForumError('FORUM_ERR_METHOD', `${c.req.path} takes ${allow}, not ${c.req.method}`, {
    headers: { Allow: allow },
  });
}
