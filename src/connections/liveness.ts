// Disconnects dead consumers. Pings go out while nothing is buffered; a peer is dead after a time with neither a pong nor a byte
// drained. A reader of server-sent events can't return a pong: it is dead when buffered bytes do not drain for that time, and
// otherwise when TCP gives up. Silence is counted in checks, not on a clock, so a paused process finds its peers alive.
import type { Socket } from 'node:net';
import { type Carrier, whenClosed } from './carrier.ts';

export interface Peer {
  readonly socket: Socket;
  /** Ends the watch when it closes. */
  readonly carrier: Carrier;
  readonly answersPings: boolean;
  /** Called only while nothing is buffered: behind a backlog a ping would wait, and the backlog itself shows life. */
  readonly ping: () => void;
}

interface WatchedPeer extends Peer {
  /** Counts of checks. */
  readonly watchedAt: number;
  heardAt: number;
  /** Bytes that the kernel had taken when bytes were last found buffered, else undefined. */
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

  /** Watches a peer, in place of HTTP's timeouts, until its carrier closes; the returned function notes a pong. */
  watch(peer: Peer): () => void {
    const watched: WatchedPeer = { ...peer, watchedAt: this.#checks, heardAt: this.#checks, takenBytes: undefined };
    this.#peers.add(watched);
    peer.socket.setTimeout(0).setKeepAlive(true, this.#pingIntervalMs);
    whenClosed(peer.carrier, () => this.#peers.delete(watched));
    return () => {
      watched.heardAt = this.#checks;
    };
  }

  /** Cuts every connection that is still open. */
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

/** Whether some of the bytes buffered at the last check have drained. Bytes that the kernel takes at once prove nothing. */
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
