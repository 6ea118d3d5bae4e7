// Which consumers are still there: a peer is dead after a time with neither a pong nor a byte of a backlog drained. A reader of
// server-sent events has no pong: it is dead when for as long nothing of what it was sent has reached it.
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { type Delivered, deliveredBytes } from './delivered.ts';

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

/** A consumer by server-sent events. */
export interface Source {
  readonly socket: Socket;
  /** Sends a comment, where nothing waits to be sent that would do as well. */
  readonly keepAlive: () => void;
}

interface SourceState {
  /** At most so many bytes had been delivered when it was last looked. */
  delivered: number;
  /** Monotonic milliseconds. */
  aliveAt: number;
  spokenAt: number;
}

/** Service restart (RFC 6455 registry): consumers reconnect and resume. */
const SERVICE_RESTART = 1012;
const CHECKS_PER_DEATH = 6;

export class Liveness {
  readonly options: LivenessOptions;
  readonly #peers = new Map<WebSocket, Peer>();
  readonly #sources = new Map<Source, SourceState>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: LivenessOptions = LIVENESS_DEFAULTS) {
    this.options = options;
    this.#timer = setInterval(() => {
      this.#check(performance.now());
      void this.#checkSources();
    }, options.deadAfterMs / CHECKS_PER_DEATH);
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

  /** Returns what ends the watch. */
  watchSource(source: Source): () => void {
    const now = performance.now();
    this.#sources.set(source, { delivered: 0, aliveAt: now, spokenAt: now });
    return () => {
      this.#sources.delete(source);
    };
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

  async #checkSources(): Promise<void> {
    if (this.#sources.size === 0) return;
    const sources = [...this.#sources];
    const looks = await deliveredBytes(sources.map(([{ socket }]) => socket));
    const now = performance.now();
    for (const [index, [source, state]] of sources.entries()) {
      noteDelivery(state, looks[index] as Delivered, now);
      if (this.#sources.has(source)) this.#checkSource(source, state, now);
    }
  }

  #checkSource(source: Source, state: SourceState, now: number): void {
    if (now - state.aliveAt >= this.options.deadAfterMs) {
      source.socket.destroy();
    } else if (now - state.spokenAt >= this.options.pingIntervalMs) {
      state.spokenAt = now;
      source.keepAlive();
    }
  }

  /** A backlog that shrank, or was replaced by a later one, was drained by the peer; what the kernel buffers proves nothing. */
  #noteDraining(peer: Peer, now: number): void {
    const sent = peer.socket.bytesWritten - peer.socket.writableLength;
    if (peer.backlog > 0 && sent >= peer.backlog) peer.aliveAt = now;
    peer.backlog = peer.socket.writableLength > 0 ? sent + 1 : 0;
  }
}

/** What is sent to a peer that is gone is not delivered, however much more of it there is. */
function noteDelivery(state: SourceState, { least, most }: Delivered, now: number): void {
  if (least > state.delivered) state.aliveAt = now;
  state.delivered = most;
}

function ping(peer: Peer, now: number): void {
  peer.pingedAt = now;
  // A ping behind a backlog would only wait: the backlog itself shows whether the peer is there.
  if (peer.socket.writableLength === 0) peer.webSocket.ping();
}
