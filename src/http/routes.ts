// A route is an endpoint's description with its handler. hono's router knows which route serves a request.
import type { Endpoint } from '../vocabulary/endpoint.ts';
import type { Authenticator } from './authenticate.ts';
import type { ForumApp, ForumContext, HttpOptions } from './context.ts';

export interface RouteContext extends HttpOptions {
  readonly auth: Authenticator;
}

export interface Route extends Endpoint {
  readonly handle: (c: ForumContext, context: RouteContext) => Response | Promise<Response>;
}

export function addRoutes(app: ForumApp, routes: readonly Route[], context: RouteContext): void {
  for (const { method, path, handle } of routes) app.on(method.toUpperCase(), path, (c) => handle(c, context));
}

/** The pattern of the route that serves a request, e.g. `/chambers/:id`: what hono's matchedRoutes reads, without a context. */
export function routeOf(app: ForumApp, method: string, path: string): string | undefined {
  const [matches] = app.router.match(method === 'HEAD' ? 'GET' : method, path);
  const [handler] = matches.at(-1) ?? [];
  return handler?.[1].path;
}

/** The methods that the path takes, as a 405 names them in Allow (RFC 9110, 15.5.6); empty for an unknown path. */
export function allowedMethods(app: ForumApp, path: string): readonly string[] {
  const methods = ['GET', 'HEAD', 'POST', 'PUT'].filter((method) => routeOf(app, method, path) !== undefined);
  return methods.length === 0 ? [] : [...methods, 'OPTIONS'].sort();
}
