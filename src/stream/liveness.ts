// Which consumers are still there: a peer is dead after a time with neither a pong nor a byte of a backlog drained.
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

export interface LivenessOptions {
  readonly pingIntervalMs: number;
  readonly deadAfterMs: number;
}

export const LIVENESS_DEFAULTS: LivenessOptions = { pingIntervalMs: 30_000, deadAfterMs: 60_000 };

interface Peer {
  readonly webSocket: WebSocket;
  readonly socket: Socket;
  /** Monotonic milliseconds. */
  aliveAt: number;
  pingedAt: number;
  backlog: number;
}

/** Service restart (RFC 6455 registry): consumers reconnect and resume. */
const SERVICE_RESTART = 1012;
const CHECKS_PER_DEATH = 6;

export class Liveness {
  readonly options: LivenessOptions;
  readonly #peers = new Map<WebSocket, Peer>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: LivenessOptions = LIVENESS_DEFAULTS) {
    this.options = options;
    this.#timer = setInterval(() => this.#check(performance.now()), options.deadAfterMs / CHECKS_PER_DEATH);
    this.#timer.unref();
  }

  get peers(): number {
    return this.#peers.size;
  }

  watch(webSocket: WebSocket, socket: Socket): void {
    const now = performance.now();
    const peer: Peer = { webSocket, socket, aliveAt: now, pingedAt: now, backlog: 0 };
    this.#peers.set(webSocket, peer);
    webSocket.on('pong', () => {
      peer.aliveAt = performance.now();
    });
    webSocket.once('close', () => this.#peers.delete(webSocket));
  }

  /** Ends every connection with close code 1012. */
  close(): void {
    clearInterval(this.#timer);
    for (const { webSocket } of this.#peers.values()) webSocket.close(SERVICE_RESTART, 'service restart');
  }

  /** Cuts what is still open. */
  terminate(): void {
    for (const { webSocket } of this.#peers.values()) webSocket.terminate();
  }

  #check(now: number): void {
    for (const peer of this.#peers.values()) {
      this.#noteDraining(peer, now);
      if (now - peer.aliveAt >= this.options.deadAfterMs) peer.webSocket.terminate();
      else if (now - peer.pingedAt >= this.options.pingIntervalMs) ping(peer, now);
    }
  }

  /** A backlog that shrank, or was replaced by a later one, was drained by the peer; what the kernel buffers proves nothing. */
  #noteDraining(peer: Peer, now: number): void {
    const sent = peer.socket.bytesWritten - peer.socket.writableLength;
    if (peer.backlog > 0 && sent >= peer.backlog) peer.aliveAt = now;
    peer.backlog = peer.socket.writableLength > 0 ? sent + 1 : 0;
  }
}

function ping(peer: Peer, now: number): void {
  peer.pingedAt = now;
  // A ping behind a backlog would only wait: the backlog itself shows whether the peer is there.
  if (peer.socket.writableLength === 0) peer.webSocket.ping();
}
