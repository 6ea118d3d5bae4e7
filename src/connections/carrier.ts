// What a long-lived response is sent over.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

/**
 * The response, or the socket of a WebSocket. A connection that is kept carries one response after another, so what a response holds
 * is released when the response closes, not the connection.
 */
export type Carrier = ServerResponse | Duplex;

/** Calls back once: when everything is sent or the peer is gone, at once if that was before. */
export function whenClosed(carrier: Carrier, callback: () => void): void {
  if (carrier.closed) callback();
  else carrier.once('close', callback);
}

/** The bindings of a WebSocket handshake, which has no response object. */
export interface HandshakeBindings {
  readonly incoming: IncomingMessage;
  /** Set by the route that accepts the handshake; called with the open WebSocket. */
  onWebSocket: ((webSocket: WebSocket) => void) | undefined;
}
