// Limits reads that need no key: few are made at a time, in turn by address, and an address that does not take its responses gets no
// more. This bounds the memory that they hold and the time that others wait behind them.
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { MiddlewareHandler } from 'hono';
import { whenClosed } from '../connections/carrier.ts';
import type { Quota } from '../connections/quota.ts';
import { currentPayer, workFor } from '../process/main-thread.ts';
import type { ForumError } from '../vocabulary/errors.ts';
import type { ForumApp } from './context.ts';

/**
 * The paths leave out probes, which wait for no slot, and what is signed, which has limits by agent. `/chambers/*` also stands for
 * `/chambers`; no path is named twice, since a request would wait for itself.
 */
const PATHS = ['/', '/chambers/*', '/ideas/*', '/agents/*', '/events', '/log/*'];
const MODELS_PATH = '/mcp';

/** Each may hold a response of a megabyte while it is made. */
const AT_ONCE_MAX = 16;
const AT_ONCE_PER_ADDRESS_MAX = 4;

interface ReadGateOptions {
  readonly networkOf: (incoming: IncomingMessage) => string;
  /** Responses that are made or sent, by network. */
  readonly underWay: Quota;
  /** The error for a network that may not ask for more now. */
  readonly workError: (network: string) => ForumError | undefined;
}

/** Must be registered before the routes of the same paths. */
export function readGateRoutes(app: ForumApp, { networkOf, underWay, workError }: ReadGateOptions): void {
  const turns = new Turns(AT_ONCE_MAX, AT_ONCE_PER_ADDRESS_MAX);

  const gate: MiddlewareHandler<{ Bindings: Partial<HttpBindings> }> = async (c, next) => {
    const { incoming, outgoing } = c.env;
    // Handshakes are counted as streams, and the service reads from itself for a request that was counted.
    if (incoming === undefined || outgoing === undefined) return await next();
    const network = networkOf(incoming);
    underWay.require(network);
    const payer = currentPayer();
    const turn = turns.take(network);
    await turn;
    try {
      workFor(payer);
      // Those before it may have taken all that the network may.
      const problem = turn && workError(network);
      if (problem !== undefined) throw problem;
      const release = underWay.hold(network);
      whenClosed(outgoing, release);
      await next();
      // A stream stays open, and has a limit of its own.
      if (c.req.method === 'GET' && c.res.headers.get('content-type')?.startsWith('text/event-stream')) release();
    } finally {
      turns.pass(network);
    }
  };

  for (const path of PATHS) app.get(path, gate);
  app.post(MODELS_PATH, gate);
}

/** Who may work now: so many in all and of each caller. Callers that wait are served in turn. */
export class Turns {
  readonly #max: number;
  readonly #perCallerMax: number;
  readonly #working = new Map<string, number>();
  /** A map's first caller is served, and becomes its last. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #total = 0;

  constructor(max: number, perCallerMax: number) {
    this.#max = max;
    this.#perCallerMax = perCallerMax;
  }

  /** Resolves when the caller may work, until it calls pass; undefined if that is now. */
  take(caller: string): Promise<void> | undefined {
    if (this.#mayWork(caller)) {
      this.#count(caller, 1);
      return undefined;
    }
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(caller) ?? [];
      waiting.push(resolve);
      this.#waiting.set(caller, waiting);
    });
  }

  pass(caller: string): void {
    this.#count(caller, -1);
    for (const [next, waiting] of this.#waiting) {
      if (!this.#mayWork(next)) continue;
      this.#waiting.delete(next);
      const resume = waiting.shift();
      if (waiting.length > 0) this.#waiting.set(next, waiting);
      this.#count(next, 1);
      resume?.();
      return;
    }
  }

  #mayWork(caller: string): boolean {
    return this.#total < this.#max && (this.#working.get(caller) ?? 0) < this.#perCallerMax;
  }

  #count(caller: string, change: 1 | -1): void {
    this.#total += change;
    const working = (this.#working.get(caller) ?? 0) + change;
    if (working > 0) this.#working.set(caller, working);
    else this.#working.delete(caller);
  }
}
