// Disconnects dead consumers. Pings are sent while nothing is buffered; a peer is dead after a period without a pong or a drained byte.
// Readers of server-sent events return no pongs: they are dead if buffered bytes do not drain for that period, or when TCP gives up.
// Silence is measured in checks, not by a clock, so that peers survive a pause of this process.
import type { Socket } from 'node:net';
import { type Carrier, whenClosed } from './carrier.ts';

export interface Peer {
  readonly socket: Socket;
  /** The peer is watched until the carrier closes. */
  readonly carrier: Carrier;
  readonly answersPings: boolean;
  /** Called only while nothing is buffered: a ping would wait behind a backlog, and a draining backlog proves that the peer is alive. */
  readonly ping: () => void;
}

interface WatchedPeer extends Peer {
  /** The number of the check before the watch began. */
  readonly watchedAt: number;
  /** The number of the last check at which the peer was alive. */
  aliveAt: number;
  /** Bytes that the kernel had taken at the last check, if any were buffered then. */
  takenBytes: number | undefined;
}

const CHECKS_UNTIL_DEAD_MIN = 6;

export class Liveness {
  readonly #peers = new Set<WatchedPeer>();
  readonly #timer: NodeJS.Timeout;
  readonly #pingIntervalMs: number;
  readonly #checksUntilDead: number;
  readonly #checksPerPing: number;
  #checks = 0;

  constructor({ pingIntervalMs, deadAfterMs }: { readonly pingIntervalMs: number; readonly deadAfterMs: number }) {
    this.#pingIntervalMs = pingIntervalMs;
    this.#checksUntilDead = Math.max(CHECKS_UNTIL_DEAD_MIN, Math.ceil(deadAfterMs / pingIntervalMs));
    this.#checksPerPing = Math.floor((pingIntervalMs * this.#checksUntilDead) / deadAfterMs);
    this.#timer = setInterval(() => this.#check(), deadAfterMs / this.#checksUntilDead).unref();
  }

  /** Watches a peer until its carrier closes, in place of HTTP's timeouts; the returned function records a pong. */
  watch(peer: Peer): () => void {
    const watched: WatchedPeer = { ...peer, watchedAt: this.#checks, aliveAt: this.#checks, takenBytes: undefined };
    this.#peers.add(watched);
    peer.socket.setTimeout(0).setKeepAlive(true, this.#pingIntervalMs);
    whenClosed(peer.carrier, () => this.#peers.delete(watched));
    return () => {
      watched.aliveAt = this.#checks;
    };
  }

  /** Closes every watched connection. */
  close(): void {
    clearInterval(this.#timer);
    for (const { socket } of this.#peers) socket.destroy();
  }

  #check(): void {
    const now = ++this.#checks;
    for (const peer of this.#peers) {
      if (isAlive(peer)) peer.aliveAt = now;
      const { socket, watchedAt, aliveAt } = peer;
      if (now - aliveAt > this.#checksUntilDead) socket.destroy();
      else if ((now - watchedAt) % this.#checksPerPing === 0 && socket.writableLength === 0) peer.ping();
    }
  }
}

/** Whether bytes that were buffered at the last check have drained. Bytes that the kernel takes immediately prove nothing. */
function isAlive(peer: WatchedPeer): boolean {
  const { socket, answersPings, takenBytes } = peer;
  const isBuffered = socket.writableLength > 0;
  const taken = isBuffered || takenBytes !== undefined ? takenBytesOf(socket) : 0;
  peer.takenBytes = isBuffered ? taken : undefined;
  return takenBytes === undefined ? !isBuffered && !answersPings : taken > takenBytes;
}

/** src/http/README.md, "What Node leaves to the service", explains why this reads a private member of Node. */
function takenBytesOf(socket: Socket): number {
  // The types lack the handle, which is null once the socket has closed.
  const { _handle: handle } = socket as unknown as {
    readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
  };
  return handle ? handle.bytesWritten - handle.writeQueueSize : socket.bytesWritten - socket.writableLength;
}
