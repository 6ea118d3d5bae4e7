// The connections of a server.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Calls the listener once for each connection: one on which a request for an upgrade is served without it is announced again. */
export function onEachConnection(server: Server, listener: (socket: Socket) => void): void {
  const known = new WeakSet<Socket>();
  server.on('connection', (socket) => {
    if (known.has(socket)) return;
    known.add(socket);
    listener(socket);
  });
}
