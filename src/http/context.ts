// The parts of the service that routes use, and hono's context with Node's request.
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { ClientNetwork } from '../connections/client-address.ts';
import type { Liveness } from '../connections/liveness.ts';
import type { Quota } from '../connections/quota.ts';
import type { SignatureVerifier } from '../crypto/verify.ts';
import type { Forum } from '../forum/forum.ts';
import type { ResponseCache } from '../html/response-cache.ts';
import type { ServiceKeys } from '../keys/service-keys.ts';
import type { StoredCallback } from '../log/callbacks.ts';
import type { StoredCheckpoint } from '../log/published-tree.ts';
import type { RateLimit } from './request-limits.ts';
import type { TodoWatches } from './todo-watches.ts';

export type ForumEnv = { Bindings: Partial<HttpBindings> };
export type ForumContext = Context<ForumEnv>;
export type ForumApp = Hono<ForumEnv>;

/** The state of the chain that GET /health reports. */
export interface ChainStatus {
  readonly ok: boolean;
  /** Further members of GET /health, e.g. contract addresses and the reason for a problem. */
  readonly details: Readonly<Record<string, unknown>>;
  /** Outstanding transactions, failed deployments, and whether this node relays; absent without a relayer. */
  readonly relayer?: {
    readonly pending: number;
    readonly failed: number;
    readonly leads: boolean;
    /** Why the relayer can't work. */
    readonly reason?: string;
  };
  /** Figures for the metrics, since the service started; absent without a relayer. */
  readonly spending?: {
    readonly transactions: number;
    readonly reverts: number;
    readonly ether: number;
    readonly attemptsMax: number;
    readonly jobEtherMax: number;
    readonly alerts: number;
    readonly balanceEther: number;
    readonly transactionsLeft: number;
  };
}

/** Problems of the log that GET /health reports. */
export interface LogStatus {
  readonly reason?: string;
  readonly warning?: string;
}

/** The callback URLs of agents. */
export interface Callbacks {
  get(did: string): Promise<StoredCallback | undefined>;
  /** Throws FORUM_ERR_CALLBACK, FORUM_ERR_FORBIDDEN, FORUM_ERR_RATE or FORUM_ERR_CONFLICT. */
  set(change: CallbackChange): Promise<void>;
}

interface CallbackChange {
  readonly did: string;
  /** Null removes the callback. */
  readonly url: string | null;
  /** The network that the request counts against. */
  readonly network: string;
  /** The hiddenSignatureKey of the request and when it was created (Unix seconds); null for an unsigned one. */
  readonly signature: { readonly key: string; readonly created: number } | null;
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
  readonly keys: ServiceKeys;
  /** Resolves to the log's name once the service listens. */
  readonly origin: Promise<string>;
  readonly verify: SignatureVerifier;
  /** Signs off the main thread with the Ed25519 key of this seed; resolves to 64 bytes. */
  readonly sign: (seed: Uint8Array, message: Uint8Array) => Promise<Uint8Array>;
  /** The network that a request counts against. */
  readonly networkOf: (incoming: IncomingMessage) => string;
  /** The network that a request counts against, and how it was determined. */
  readonly describeClient: (incoming: IncomingMessage) => ClientNetwork;
  readonly env: string;
  readonly version: string;
  /** Base URLs of the service without a trailing slash; if empty, http:// and the Host header. */
  readonly publicUrls: readonly string[];
  readonly allowUnsigned: boolean;
  readonly maxBodyBytes: number;
  readonly chainStatus: () => ChainStatus;
  /** Undefined while nothing is wrong with the log. */
  readonly logStatus: () => LogStatus | undefined;
  /** The newest published checkpoint. */
  readonly checkpoint: () => Promise<StoredCheckpoint | undefined>;
  /** Counts an unsigned registration of a new key against its network; throws FORUM_ERR_RATE. */
  readonly requireRegistration: (incoming: IncomingMessage | undefined) => void;
  readonly responses: ResponseCache;
  readonly callbacks: Callbacks;
  /** Charges requests by one agent; the forum charges moves. */
  readonly agentRate: Pick<RateLimit, 'take'>;
  readonly todoWatches: TodoWatches;
  /** Limits how many requests of an agent may wait at GET /me/todo at the same time. */
  readonly waits: Quota;
  readonly liveness: Liveness;
  /** Called for every response with a status of 500 or above, with the id that the response carries. */
  readonly onFailure: (failure: Failure) => void;
}
