// Stops the service: rejects new requests, finishes those under way, and closes the log last.
import type { Server } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { SignatureVerifierPool } from '../verifier/verifier.ts';
import type { Millis } from '../vocabulary/values.ts';
import type { ChainLink } from './chain.ts';
import type { Composition } from './compose.ts';
import type { SilentConnections } from './silent-connections.ts';

/** The time from the beginning of a stop on for requests under way, stream peers, and the relayer with its chain. */
const STOP_GRACE_MS = 5_000;
/** The time from the beginning of a stop on for moves under way to be written. */
const COMMITS_MS_MAX = 6_500;
/** The time for the clock to be persisted, which the next start does without. */
const CLOCK_MS_MAX = 1_000;
/** While stopping: a keep-alive connection becomes idle only once its last response is out. */
const IDLE_SWEEP_MS = 20;

/** What a running service holds open. */
export interface Running {
  readonly composed: Composition;
  readonly server: Server;
  readonly silent: SilentConnections;
  readonly chain: ChainLink;
  readonly verifier: SignatureVerifierPool;
  readonly metrics: { close(): void } | undefined;
  readonly clockTimer: NodeJS.Timeout;
}

/**
 * What stands still is left behind, as a crash would leave it: the relayer's next start continues from there. Throws when moves under
 * way were not written in time.
 */
export async function stopService(running: Running): Promise<void> {
  const { composed, server, chain, verifier, metrics, clockTimer } = running;
  const [grace, commitsEnd] = [pause(STOP_GRACE_MS), pause(COMMITS_MS_MAX)];
  const { forum } = composed;
  composed.drain();
  const closed = new Promise((resolve) => server.close(resolve));
  const sweeping = setInterval(() => setImmediate(closeIdle, running), IDLE_SWEEP_MS);
  await Promise.race([Promise.all([closed, chain.stop(), composed.publishing.stop()]), grace]);
  clearInterval(sweeping);
  composed.close();
  server.closeAllConnections();
  metrics?.close();
  await verifier.close();
  const isLate = await Promise.race([forum.close(), commitsEnd.then(() => true)]);
  clearInterval(clockTimer);
  await Promise.race([forum.persistClock().catch(() => {}), pause(CLOCK_MS_MAX)]);
  await forum.store.close();
  if (isLate) throw new Error('stopped without a response to moves under way: they were not written in time');
}

/** Called by setImmediate, right after the event loop has read its sockets. */
function closeIdle({ server, silent }: Running): void {
  server.closeIdleConnections();
  silent.close();
}

/** Does not keep the process alive. */
function pause(millis: Millis): Promise<void> {
  return setTimeout(millis, undefined, { ref: false });
}
