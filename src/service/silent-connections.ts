// Connections on which no request was sent, as browsers and undici keep them in reserve: Node counts them as busy, so a stop would
// wait for them.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { onEachConnection } from '../connections/each-connection.ts';
import type { Millis } from '../vocabulary/values.ts';

/** A client that opens a connection for a request sends it within a round trip. */
const FIRST_REQUEST_MS_MAX = 250;

export class SilentConnections {
  readonly #openedAt = new Map<Socket, Millis>();

  constructor(server: Server) {
    onEachConnection(server, (socket) => {
      this.#openedAt.set(socket, performance.now());
      socket.once('close', () => this.#openedAt.delete(socket));
    });
  }

  /** Closing a socket loses what is unread, so this is called when the event loop has just read its sockets. */
  close(): void {
    const openedBefore = performance.now() - FIRST_REQUEST_MS_MAX;
    for (const [socket, openedAt] of this.#openedAt) {
      if (socket.bytesRead === 0 && openedAt < openedBefore) socket.destroy();
    }
  }
}
