import type * as v from 'valibot';
import type { Endpoint, ResponseDescription } from '../vocabulary/endpoint.ts';
import type { Authenticator } from './authenticate.ts';
import type { ForumContext, HttpOptions } from './context.ts';
import type { ReceiptSigner } from './receipt-signer.ts';

export interface RouteContext extends HttpOptions {
  readonly auth: Authenticator;
  readonly receipts: ReceiptSigner;
}

/** An endpoint's description and handler. */
export interface Route extends Endpoint {
  readonly handle: (context: RouteContext, c: ForumContext) => Response | Promise<Response>;
}

interface GetRoute extends Omit<Route, 'method' | 'body' | 'responses'>, Pick<ResponseDescription, 'headers'> {
  readonly returns: string;
  readonly content: NonNullable<ResponseDescription['content']>;
}

/** Returns the route of a GET. */
export function getRoute({ returns, headers, content, ...route }: GetRoute): Route {
  return { method: 'get', ...route, responses: { 200: { description: returns, headers, content } } };
}

interface ReadRoute<Body> extends Omit<GetRoute, 'content'> {
  /** The name of the schema among the components of the OpenAPI document. */
  readonly name: string;
  readonly schema: v.GenericSchema<Body>;
  readonly example: NoInfer<Body>;
}

/** Returns the route of a GET with a JSON response; the compiler checks the example against the schema. */
export function readRoute<Body>({ name, schema, example, ...route }: ReadRoute<Body>): Route {
  return getRoute({ ...route, content: { name, schema, example } });
}
