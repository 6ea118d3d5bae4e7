// What the routes are given: hono's context with Node's request beneath it, and the parts of the service they use.
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { SignatureVerifier } from '../crypto/verify.ts';
import type { Forum } from '../forum/forum.ts';
import type { RateLimits } from './admission.ts';

export type ForumEnv = { Bindings: Partial<HttpBindings> };
export type ForumContext = Context<ForumEnv>;
export type ForumApp = Hono<ForumEnv>;

/** State of the chain as GET /health tells it. */
export interface ChainStatus {
  readonly ok: boolean;
  /** Extensions of GET /health, e.g. contract addresses and why it is not ok. */
  readonly details: Readonly<Record<string, unknown>>;
  /** What the relayer has still to do and what failed; absent without one. */
  readonly relayer?: { readonly pending: number; readonly failed: number };
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
  /** The network in whose turn a caller's signatures are verified. */
  readonly networkOf: (incoming: IncomingMessage) => string;
  readonly env: string;
  readonly version: string;
  /** Base addresses under which clients know the service, without a trailing slash; empty: http:// and the Host header. */
  readonly publicUrls: readonly string[];
  readonly allowUnsigned: boolean;
  readonly maxBodyBytes: number;
  readonly chainStatus: () => ChainStatus;
  /** Signed requests of one agent. */
  readonly ratePerDid: RateLimits;
  /** Told of every answer of 500 and above, with the id that the answer carries. */
  readonly onFailure: (failure: Failure) => void;
}
