// Limits reads that need no key: few are made at a time, in turn by address, and an address that does not take its responses, or waits
// for many turns, gets no more. This bounds the memory that they hold and the time that others wait behind them. A turn is never held
// while the client is waited for: what it sends has arrived before, and what it gets is sent after.
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { MiddlewareHandler } from 'hono';
import { whenClosed } from '../connections/carrier.ts';
import type { Quota } from '../connections/quota.ts';
import { ConcurrencyLimit } from '../process/concurrency-limit.ts';
import { type ForumError, invalid } from '../vocabulary/errors.ts';
import type { ForumApp } from './context.ts';

/**
 * The paths leave out probes, which wait for no slot, what is signed, which has limits by agent, and `/mcp`, which takes its turn once it
 * has read its body. `/chambers/*` also stands for `/chambers`; no path is named twice, since a request would wait for itself.
 */
const PATHS = ['/', '/chambers/*', '/ideas/*', '/agents/*', '/events', '/log/*'];

/** Each may hold a response of a megabyte while it is made. */
const READS_AT_ONCE_MAX = 16;
const READS_AT_ONCE_PER_NETWORK_MAX = 4;

interface ReadGateOptions {
  readonly networkOf: (incoming: IncomingMessage) => string;
  /** Reads that wait for a turn, are made or are sent, by network. */
  readonly underWay: Quota;
  /** The error for a network that may not ask for more now. */
  readonly workError: (network: string) => ForumError | undefined;
}

/**
 * Makes a response when it is the caller's turn; throws FORUM_ERR_RATE. `release` stops counting the response as under way before it has
 * been sent.
 */
export type InTurn = <Result>(
  bindings: Partial<HttpBindings>,
  respond: (release: () => void) => Promise<Result>,
) => Promise<Result>;

export function readGate({ networkOf, underWay, workError }: ReadGateOptions): InTurn {
  const reads = new ConcurrencyLimit({ max: READS_AT_ONCE_MAX, perKeyMax: READS_AT_ONCE_PER_NETWORK_MAX });
  return async ({ incoming, outgoing }, respond) => {
    // Handshakes are counted as streams, and the service reads from itself for a request that was counted.
    if (incoming === undefined || outgoing === undefined) return respond(() => {});
    const network = networkOf(incoming);
    const release = underWay.hold(network);
    whenClosed(outgoing, release);
    const waiting = reads.acquire(network);
    if (waiting !== undefined) {
      whenClosed(outgoing, waiting.leave);
      if (!(await waiting.turn)) throw invalid('the connection was closed before its turn');
    }
    try {
      // Those before it may have taken all that the network may.
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
      // A stream stays open, and has a limit of its own.
      if (c.res.headers.get('content-type')?.startsWith('text/event-stream')) release();
    });
  for (const path of PATHS) app.get(path, gate);
}
