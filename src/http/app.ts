// Assembles the HTTP edge: routes, preflight, errors. Each handler reads the body, authenticates the caller, calls the forum and responds.
import { Hono } from 'hono';
import { ForumError } from '../vocabulary/errors.ts';
import { accountRoutes } from './accounts.ts';
import { Authenticator } from './authenticate.ts';
import { callbackRoutes } from './callback.ts';
import { chamberRoutes } from './chambers.ts';
import type { ForumApp, ForumContext, ForumEnv, HttpOptions } from './context.ts';
import { ideaRoutes } from './ideas.ts';
import { keyDirectoryRoute } from './key-directory.ts';
import { logTreeRoutes } from './log-tree.ts';
import { moveRoutes } from './moves.ts';
import { outcomeRoute } from './outcome.ts';
import { proofRoutes } from './proofs.ts';
import { ReceiptSigner } from './receipt-signer.ts';
import { errorResponse, HttpError, preflight, requestIdOf } from './response.ts';
import type { Route } from './route.ts';
import { serviceRoutes } from './service.ts';
import { todoRoute } from './todo.ts';
import { transcriptRoute } from './transcript.ts';

/** Documented for one path, served on every path. */
const preflightRoute: Route = {
  method: 'options',
  path: '/chambers',
  operationId: 'preflightChambers',
  tag: 'Chambers',
  summary: 'CORS preflight',
  description: 'The same on every path.',
  responses: { 204: { description: 'Any origin may call.' } },
  handle: preflight,
};

export const httpRoutes: readonly Route[] = [
  ...serviceRoutes,
  keyDirectoryRoute,
  ...accountRoutes,
  todoRoute,
  ...callbackRoutes,
  ...chamberRoutes,
  outcomeRoute,
  ...moveRoutes,
  preflightRoute,
  ...ideaRoutes,
  ...proofRoutes,
  ...logTreeRoutes,
  transcriptRoute,
];

/** Responds to a request that no route matches; `json` is the error response. */
type NoRoute = (c: ForumContext, json: Response) => Promise<Response>;

/** Calls `addMiddleware` before it adds the routes, so that the middleware runs first. */
export function createApp(options: HttpOptions, addMiddleware: (app: ForumApp) => NoRoute): ForumApp {
  const app = new Hono<ForumEnv>();
  const respond = addMiddleware(app);
  const context = {
    ...options,
    auth: new Authenticator(options),
    receipts: new ReceiptSigner(options),
  };
  app.options('*', preflight);
  for (const { method, path, handle } of httpRoutes) app.on(method.toUpperCase(), path, handle.bind(null, context));
  app.notFound((c) => respond(c, errorResponse(noRoute(app, c.req))));
  app.onError((error, c) => respondFailure(error, c, options));
  return app;
}

/** A 405 names the methods that the path allows (RFC 9110, 15.5.6). */
function noRoute(app: ForumApp, { method, path }: ForumContext['req']): ForumError {
  const methods = ['GET', 'HEAD', 'POST', 'PUT'].filter((each) => routeOf(app, each, path) !== undefined);
  if (methods.length === 0) return new ForumError('FORUM_ERR_NOT_FOUND', `${path} not found`);
  const allow = [...methods, 'OPTIONS'].sort().join(', ');
  return new HttpError('FORUM_ERR_METHOD', `${path} allows ${allow}, not ${method}`, { Allow: allow });
}

/**
 * Returns the pattern of the route that serves a request, e.g. `/chambers/:id`. The last match is the route. Only preflights are
 * served by a wildcard; for other methods a wildcard is middleware.
 */
export function routeOf(app: ForumApp, method: string, path: string): string | undefined {
  const [matches] = app.router.match(method === 'HEAD' ? 'GET' : method, path);
  const [handler] = matches.at(-1) ?? [];
  const pattern = handler?.[1].path;
  return method !== 'OPTIONS' && pattern?.endsWith('*') ? undefined : pattern;
}

/** Logs a failure of the service with an id that the response also carries. */
function respondFailure(error: Error, c: ForumContext, { onFailure }: HttpOptions): Response {
  const response = errorResponse(error);
  const { status } = response;
  if (status < 500) return response;
  const requestId = requestIdOf(c.env.incoming ?? c.req.raw);
  onFailure({ requestId, method: c.req.method, path: c.req.path, status, error });
  response.headers.set('X-Request-Id', requestId);
  return response;
}
