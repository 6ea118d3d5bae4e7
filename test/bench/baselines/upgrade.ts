// The baselines' WebSocket handshake, by ws: what they write afterwards goes to the TCP socket itself.
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer } from 'ws';

/** Calls `onOpen` with the path asked for and the socket, which is open and has nothing to say. */
export function acceptStreams(server: Server, onOpen: (path: string, socket: Socket) => void): void {
  const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    webSockets.handleUpgrade(request, socket, head, () => onOpen(request.url ?? '', socket));
  });
}
