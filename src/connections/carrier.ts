// What a long-lived response is sent over. A connection that is kept carries one response after another, so that what a response
// holds ends with the response, not with the connection.
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The response, or the socket of a WebSocket. */
export type Carrier = ServerResponse | Duplex;

/** Calls back once: when all is sent or the peer is gone, at once if that was before. */
export function whenClosed(carrier: Carrier, callback: () => void): void {
  if (carrier.closed) callback();
  else carrier.once('close', callback);
}
