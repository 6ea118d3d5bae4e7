// Limits unsigned reads: only a few run at once, networks take turns, and a network with too many unread responses or waiting reads is
// refused. This bounds the memory that reads hold and the time that others wait. No read holds its slot while it waits for the client:
// the request arrives before the read takes a slot, and the response is sent after the read has released it.
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { MiddlewareHandler } from 'hono';
import { whenClosed } from '../connections/carrier.ts';
import type { Quota } from '../connections/quota.ts';
import { ConcurrencyLimit } from '../process/concurrency-limit.ts';
import { type ForumError, invalid } from '../vocabulary/errors.ts';
import type { ForumApp } from './context.ts';

/**
 * The paths of unsigned reads. Excluded are probes, which must not wait, and `/mcp`, which waits for its slot after it has read the body.
 * `/chambers/*` also matches `/chambers`. No request may match two paths, because it would wait for itself.
 */
const PATHS = ['/', '/chambers/*', '/ideas/*', '/agents/*', '/events', '/log/*'];

/** Each read may hold a response of a megabyte. */
const READS_AT_ONCE_MAX = 16;
const READS_AT_ONCE_PER_NETWORK_MAX = 4;

interface ReadGateOptions {
  readonly networkOf: (incoming: IncomingMessage) => string;
  /** Counts reads by network, until their responses are sent. */
  readonly inFlight: Quota;
  /** Returns an error if the network is over its budget. */
  readonly workError: (network: string) => ForumError | undefined;
}

/**
 * Calls `respond` once the caller's network has a free slot; throws FORUM_ERR_RATE. `release` stops counting the read before its response
 * is sent.
 */
export type InTurn = <Result>(
  bindings: Partial<HttpBindings>,
  respond: (release: () => void) => Promise<Result>,
) => Promise<Result>;

export function readGate({ networkOf, inFlight, workError }: ReadGateOptions): InTurn {
  const reads = new ConcurrencyLimit({ max: READS_AT_ONCE_MAX, perKeyMax: READS_AT_ONCE_PER_NETWORK_MAX });
  return async ({ incoming, outgoing }, respond) => {
    // Handshakes count as streams, and the service makes requests without a socket only for requests that were counted.
    if (incoming === undefined || outgoing === undefined) return respond(() => {});
    const network = networkOf(incoming);
    const release = inFlight.acquire(network);
    whenClosed(outgoing, release);
    const waiting = reads.acquire(network);
    if (waiting !== undefined) {
      whenClosed(outgoing, waiting.leave);
      if (!(await waiting.turn)) throw invalid('the connection was closed before its turn');
    }
    try {
      // Earlier reads may have used up the network's budget.
      const problem = waiting && workError(network);
      if (problem !== undefined) throw problem;
      return await respond(release);
    } finally {
      reads.release(network);
    }
  };
}

/** Must be registered before the routes of the same paths. */
export function readGateRoutes(app: ForumApp, inTurn: InTurn): void {
  const gate: MiddlewareHandler<{ Bindings: Partial<HttpBindings> }> = (c, next) =>
    inTurn(c.env, async (release) => {
      await next();
      // A stream stays open and has its own limit.
      if (c.res.headers.get('content-type')?.startsWith('text/event-stream')) release();
    });
  for (const path of PATHS) app.get(path, gate);
}
