// A route and its context: the parts of the service, and hono's context with Node's request beneath it.
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type * as v from 'valibot';
import type { Liveness } from '../connections/liveness.ts';
import type { Quota } from '../connections/quota.ts';
import type { SignatureVerifier } from '../crypto/verify.ts';
import type { Forum } from '../forum/forum.ts';
import type { Endpoint, ResponseDescription } from '../vocabulary/endpoint.ts';
import type { RateLimit } from './admission.ts';
import type { Authenticator } from './authenticate.ts';
import type { BodyCache } from './body-cache.ts';
import type { TodoWatches } from './todo-watches.ts';

export type ForumEnv = { Bindings: Partial<HttpBindings> };
export type ForumContext = Context<ForumEnv>;
export type ForumApp = Hono<ForumEnv>;

/** The state of the chain as GET /health reports it. */
export interface ChainStatus {
  readonly ok: boolean;
  /** Extensions of GET /health, e.g. contract addresses and why it is not ok. */
  readonly details: Readonly<Record<string, unknown>>;
  /** Transactions to be done, deployments that failed, and whether this node relays; absent without a relayer. */
  readonly relayer?: {
    readonly pending: number;
    readonly failed: number;
    readonly leads: boolean;
    /** Why it can't work now. */
    readonly reason?: string;
  };
}

export interface Failure {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly error: unknown;
}

export interface HttpOptions {
  readonly forum: Forum;
  readonly verify: SignatureVerifier;
  /** The network under which a caller's signatures are queued for verification. */
  readonly networkOf: (incoming: IncomingMessage) => string;
  readonly env: string;
  readonly version: string;
  /** Base URLs that clients use for the service, without a trailing slash; empty: http:// and the Host header. */
  readonly publicUrls: readonly string[];
  readonly allowUnsigned: boolean;
  readonly maxBodyBytes: number;
  readonly chainStatus: () => ChainStatus;
  /** Counts an unsigned registration of a new key against its network; throws FORUM_ERR_RATE. */
  readonly requireRegistration: (incoming: IncomingMessage | undefined) => void;
  /** Of requests by one agent; the forum charges it for moves. */
  /** Memory for responses that are made once for all their readers. */
  readonly responseCacheBytesMax: number;
  readonly agentRate: Pick<RateLimit, 'take'>;
  readonly todoWatches: TodoWatches;
  /** Concurrent requests of one agent that wait for a change of GET /me/todo. */
  readonly waits: Quota;
  readonly liveness: Liveness;
  /** Called for every response of 500 and above, with the id that the response carries. */
  readonly onFailure: (failure: Failure) => void;
}

export interface RouteContext extends HttpOptions {
  readonly auth: Authenticator;
  readonly bodies: BodyCache;
}

/** An endpoint's description with its handler. */
export interface Route extends Endpoint {
  readonly handle: (context: RouteContext, c: ForumContext) => Response | Promise<Response>;
}

interface ReadRoute<Body> extends Omit<Route, 'method' | 'body' | 'responses'>, Pick<ResponseDescription, 'headers'> {
  /** Describes the response. */
  readonly returns: string;
  /** Names the schema's component. */
  readonly name: string;
  readonly schema: v.GenericSchema<Body>;
  readonly example: NoInfer<Body>;
}

/** A GET with a JSON response, its example checked against its schema's type. */
export function readRoute<Body>({ returns, headers, name, schema, example, ...route }: ReadRoute<Body>): Route {
  const content = { name, schema, example };
  return { method: 'get', ...route, responses: { 200: { description: returns, headers, content } } };
}
