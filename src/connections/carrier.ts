// The response or socket over which a long-lived response is sent.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

/**
 * The response, or the socket of a WebSocket. A keep-alive connection carries several responses, so the resources of a response are released
 * when the response closes, not when the connection does.
 */
export type Carrier = ServerResponse | Duplex;

/** Calls back once, when everything is sent or the peer is gone; immediately if that has already happened. */
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
