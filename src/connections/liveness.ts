// Disconnects dead consumers. Pings are sent while nothing is buffered; a peer is dead after a time without a pong or a drained byte.
// Readers of server-sent events return no pongs: they are dead if buffered bytes do not drain for that time, or when TCP gives up.
// Silence is counted in checks, not on a clock, so that peers survive a pause of this process.
import type { Socket } from 'node:net';
import { type Carrier, whenClosed } from './carrier.ts';

export interface Peer {
  readonly socket: Socket;
  /** The watch ends when it closes. */
  readonly carrier: Carrier;
  readonly answersPings: boolean;
  /** Called only while nothing is buffered: a ping would wait behind a backlog, and a backlog that drains shows life. */
  readonly ping: () => void;
}

interface WatchedPeer extends Peer {
  /** Both are numbers of a check. */
  readonly watchedAt: number;
  heardAt: number;
  /** Bytes that the kernel had taken at the last check, if any were buffered then. */
  takenBytes: number | undefined;
}

const CHECKS_PER_DEATH_MIN = 6;

export class Liveness {
  readonly #peers = new Set<WatchedPeer>();
  readonly #timer: NodeJS.Timeout;
  readonly #pingIntervalMs: number;
  readonly #checksPerDeath: number;
  readonly #checksPerPing: number;
  #checks = 0;

  constructor({ pingIntervalMs, deadAfterMs }: { readonly pingIntervalMs: number; readonly deadAfterMs: number }) {
    this.#pingIntervalMs = pingIntervalMs;
    this.#checksPerDeath = Math.max(CHECKS_PER_DEATH_MIN, Math.ceil(deadAfterMs / pingIntervalMs));
    this.#checksPerPing = Math.floor((pingIntervalMs * this.#checksPerDeath) / deadAfterMs);
    this.#timer = setInterval(() => this.#check(), deadAfterMs / this.#checksPerDeath).unref();
  }

  /** Watches a peer until its carrier closes, in place of HTTP's timeouts; the returned function records a pong. */
  watch(peer: Peer): () => void {
    const watched: WatchedPeer = { ...peer, watchedAt: this.#checks, heardAt: this.#checks, takenBytes: undefined };
    this.#peers.add(watched);
    peer.socket.setTimeout(0).setKeepAlive(true, this.#pingIntervalMs);
    whenClosed(peer.carrier, () => this.#peers.delete(watched));
    return () => {
      watched.heardAt = this.#checks;
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
      if (isHeard(peer)) peer.heardAt = now;
      const { socket, watchedAt, heardAt } = peer;
      if (now - heardAt > this.#checksPerDeath) socket.destroy();
      else if ((now - watchedAt) % this.#checksPerPing === 0 && socket.writableLength === 0) peer.ping();
    }
  }
}

/** Whether bytes that were buffered at the last check have drained. Bytes that the kernel takes at once prove nothing. */
function isHeard(peer: WatchedPeer): boolean {
  const { socket, answersPings, takenBytes } = peer;
  const isBuffered = socket.writableLength > 0;
  const taken = isBuffered || takenBytes !== undefined ? takenBytesOf(socket) : 0;
  peer.takenBytes = isBuffered ? taken : undefined;
  return takenBytes === undefined ? !isBuffered && !answersPings : taken > takenBytes;
}

/** src/http/README.md, "What Node leaves to the service", says why a private member of Node is read. */
function takenBytesOf(socket: Socket): number {
  // The handle is not in the types, and null once the socket has closed.
  const { _handle: handle } = socket as unknown as {
    readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
  };
  return handle ? handle.bytesWritten - handle.writeQueueSize : socket.bytesWritten - socket.writableLength;
}
