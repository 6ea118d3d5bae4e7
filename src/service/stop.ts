// Stops the service: rejects new requests, finishes those in progress, and closes the log last.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { SignatureVerifierPool } from '../verifier/verifier.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { ChainLink } from './chain.ts';
import type { Composition } from './compose.ts';

/** How long requests, streams and the relayer may take to finish, from the beginning of the stop. */
const STOP_GRACE_MS = 5_000;
/** How long accepted moves may take to be written, from the beginning of the stop. */
const COMMITS_MS_MAX = 6_500;
/** How long the last write of the clock may take. The next start does not depend on it. */
const CLOCK_MS_MAX = 1_000;
/** Idle connections are closed at this interval, because a keep-alive connection becomes idle only once its last response is sent. */
const IDLE_SWEEP_MS = 20;

export interface Running {
  readonly composed: Composition;
  readonly server: Server;
  readonly unused: UnusedConnections;
  readonly chain: ChainLink;
  readonly verifier: SignatureVerifierPool;
  readonly metrics: { close(): void } | undefined;
  readonly clockTimer: NodeJS.Timeout;
}

/**
 * Abandons work that does not end in time. The relayer resumes such work after the next start, as after a crash. Throws if accepted moves were
 * not written in time.
 */
export async function stopService(running: Running): Promise<void> {
  const { composed, server, chain, verifier, metrics, clockTimer } = running;
  const [grace, commitsEnd] = [pause(STOP_GRACE_MS), pause(COMMITS_MS_MAX)];
  const { forum } = composed;
  composed.drain();
  const closed = new Promise((resolve) => server.close(resolve));
  const sweeping = setInterval(() => setImmediate(closeIdle, running), IDLE_SWEEP_MS);
  await Promise.race([
    Promise.all([
      closed,
      chain.stop(),
      composed.publishing.stop(),
      composed.calling.stop(),
      composed.withholder.stop(),
    ]),
    grace,
  ]);
  clearInterval(sweeping);
  composed.close();
  server.closeAllConnections();
  metrics?.close();
  await verifier.close();
  const isLate = await Promise.race([forum.close(), commitsEnd.then(() => true)]);
  clearInterval(clockTimer);
  await Promise.race([forum.persistClock().catch(() => {}), pause(CLOCK_MS_MAX)]);
  await forum.store.close();
  if (isLate) throw new Error('stopped without a response to accepted moves: they were not written in time');
}

/** Called with setImmediate, right after the event loop has read its sockets. */
function closeIdle({ server, unused }: Running): void {
  server.closeIdleConnections();
  unused.close();
}

/** Does not keep the process alive. */
function pause(millis: Millis): Promise<void> {
  return setTimeout(millis, undefined, { ref: false });
}

/** How long a connection may stay open without a request: a client that needs one sends the request within a round trip. */
const FIRST_REQUEST_MS_MAX = 250;

/**
 * Connections without a request yet, which browsers and undici open in advance. Node counts them as busy, so a stop would wait for them.
 */
export class UnusedConnections {
  readonly #openedAt = new Map<Socket, Millis>();

  constructor(server: Server) {
    server.on('connection', (socket) => {
      this.#openedAt.set(socket, performance.now());
      socket.once('close', () => this.#openedAt.delete(socket));
    });
  }

  /** Discards unread data, so it must be called right after the event loop has read its sockets. */
  close(): void {
    const openedBefore = performance.now() - FIRST_REQUEST_MS_MAX;
    for (const [socket, openedAt] of this.#openedAt) {
      if (socket.bytesRead === 0 && openedAt < openedBefore) socket.destroy();
    }
  }
}
