// WS /chambers/:id/stream: a consumer's pages written to its socket as text frames, one for each line.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { upgradeWebSocket } from '@hono/node-server';
import type { Context } from 'hono';
import { WebSocket } from 'ws';
import type { Page } from '../log/log.ts';
import { framesOf } from './frames.ts';
import type { Liveness } from './liveness.ts';
import type { Tail } from './tail.ts';

/** Accepts the handshake; once open, the socket is fed from a tail until either ends. */
export function serveWebSocket(c: Context, openTail: () => Tail, liveness: Liveness): Promise<Response> {
  return upgradeWebSocket(c, {
    onOpen: (_event, { raw }) => {
      if (!(raw instanceof WebSocket)) throw new Error('the upgrade gave no socket of ws');
      const socket = c.env.incoming.socket as Socket;
      const tail = openTail();
      queueMicrotask(() => feed(tail, raw, { socket, liveness }));
    },
  });
}

interface Peer {
  readonly socket: Socket;
  readonly liveness: Liveness;
}

/**
 * The adapter's listeners, set by now, hold the whole request: a consumer that waits for days need not keep it. They are
 * of no use, as consumers have nothing to say; an error is followed by the close.
 */
function feed(tail: Tail, webSocket: WebSocket, { socket, liveness }: Peer): void {
  webSocket.removeAllListeners();
  webSocket.on('error', ignore);
  webSocket.once('close', () => tail.stop());
  liveness.watch(webSocket, socket);
  tail.follow({
    take: (page) => write(page, webSocket, socket),
    end: (error) => error !== undefined && webSocket.close(INTERNAL_ERROR),
  });
}

function ignore(): void {}

/**
 * Frames go to the TCP socket itself, a page in one write: without compression ws queues nothing of its own, so frames
 * and pings alternate at frame boundaries.
 */
function write(page: Page, webSocket: WebSocket, socket: Socket): Promise<void> | undefined {
  if (webSocket.readyState !== WebSocket.OPEN) return undefined;
  return socket.write(framesOf(page)) ? undefined : drained(socket);
}

const INTERNAL_ERROR = 1011;

async function drained(socket: Socket): Promise<void> {
  if (!socket.writableNeedDrain || socket.destroyed) return;
  const ended = new AbortController();
  const { signal } = ended;
  await Promise.race([once(socket, 'drain', { signal }), once(socket, 'close', { signal })]).finally(() =>
    ended.abort(),
  );
}
