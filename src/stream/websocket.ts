// WS /chambers/:id/stream: writes a subscription's pages to a socket, one text frame for each line.
import type { Socket } from 'node:net';
import type { Context } from 'hono';
import { WebSocket } from 'ws';
import type { HandshakeBindings } from '../connections/carrier.ts';
import type { Liveness } from '../connections/liveness.ts';
import { framesOf } from './frames.ts';
import type { Annotated, Subscription } from './subscription.ts';

const INTERNAL_ERROR = 1011;
const NORMAL = 1000;
/** Service restart (RFC 6455 registry): consumers reconnect and resume. */
const SERVICE_RESTART = 1012;

export interface WebSocketOptions {
  readonly subscribe: (consumer: Annotated) => Subscription;
  readonly socket: Socket;
  readonly liveness: Liveness;
}

/** Accepts the handshake, and serves the open socket from a subscription until either ends. */
export function acceptWebSocket(c: Context, options: WebSocketOptions): Response {
  (c.env as HandshakeBindings).onWebSocket = (webSocket) => serve(webSocket, options);
  return new Response();
}

/**
 * Writes each page directly to the TCP socket, in one write. Without compression ws queues nothing, so frames and pings alternate at frame
 * boundaries.
 */
function serve(webSocket: WebSocket, { subscribe, socket, liveness }: WebSocketOptions): void {
  // Consumers send nothing, and a close event follows each error.
  webSocket.on('error', () => {});
  const subscription = subscribe({
    take: (page) => {
      if (webSocket.readyState === WebSocket.OPEN)
        return socket.write(framesOf(page)) ? undefined : untilDrained(socket);
      // The socket is closing: without writes there is no backpressure, and the subscription would read all history.
      subscription.stop();
      return undefined;
    },
    note: (text) => {
      if (webSocket.readyState === WebSocket.OPEN)
        socket.write(framesOf({ ndjson: Buffer.from(`${text}\n`), count: 1 }));
    },
    end: (reason) => {
      if (reason === 'stopped') webSocket.close(SERVICE_RESTART, 'service restart');
      else if (reason === 'over') webSocket.close(NORMAL, 'the chamber is over');
      else webSocket.close(INTERNAL_ERROR);
    },
  });
  webSocket.once('close', () => subscription.stop());
  const ping = () => webSocket.ping();
  webSocket.on('pong', liveness.watch({ socket, carrier: socket, answersPings: true, ping }));
}

/** Resolves when the socket has drained or closed. */
function untilDrained(socket: Socket): Promise<void> | undefined {
  if (socket.destroyed) return undefined;
  return new Promise((resolve) => {
    const settle = () => {
      socket.off('drain', settle).off('close', settle);
      resolve();
    };
    socket.on('drain', settle).on('close', settle);
  });
}
