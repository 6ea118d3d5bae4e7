// The baselines' WebSocket handshake, done by ws; the baselines then write to the TCP socket directly.
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer } from 'ws';

/** Calls `onOpen` with the requested path and the open socket. */
export function acceptStreams(server: Server, onOpen: (path: string, socket: Socket) => void): void {
  const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    webSockets.handleUpgrade(request, socket, head, () => onOpen(request.url ?? '', socket));
  });
}
