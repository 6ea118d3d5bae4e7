// WS /chambers/:id/stream: a subscription's pages written to a socket as text frames, one for each line.
import type { Socket } from 'node:net';
import { upgradeWebSocket } from '@hono/node-server';
import type { Context } from 'hono';
import { WebSocket } from 'ws';
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

/** Accepts the handshake; once open, the socket is served from a subscription until either ends. */
export function serveWebSocket(c: Context, options: WebSocketOptions): Promise<Response> {
  return upgradeWebSocket(c, {
    onOpen: (_event, { raw }) => {
      if (!(raw instanceof WebSocket)) throw new Error('the upgrade returned no WebSocket of ws');
      queueMicrotask(() => serve(raw, options));
    },
  });
}

/**
 * Frames go to the TCP socket itself, a page in one write: without compression ws itself queues nothing, so frames
 * and pings alternate at frame boundaries.
 */
function serve(webSocket: WebSocket, { subscribe, socket, liveness }: WebSocketOptions): void {
  // The adapter's listeners, set by now, hold the whole request. They are not needed: consumers send nothing, and an error is
  // followed by the close.
  webSocket.removeAllListeners();
  webSocket.on('error', () => {});
  const subscription = subscribe({
    take: (page) => {
      if (webSocket.readyState === WebSocket.OPEN) return socket.write(framesOf(page)) ? undefined : drained(socket);
      // Closing: reading on without writing would go through all history with nothing to slow it down.
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

/** Resolves when the socket has room again or has closed. */
function drained(socket: Socket): Promise<void> | undefined {
  if (socket.destroyed) return undefined;
  return new Promise((resolve) => {
    const settle = () => {
      socket.off('drain', settle).off('close', settle);
      resolve();
    };
    socket.on('drain', settle).on('close', settle);
  });
}
