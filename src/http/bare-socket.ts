// Responses on sockets for which Node offers no response object: it has detached them for an upgrade or could not parse their
// bytes.
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** How long a peer may take to read the response and end its side; what it still sends is discarded. */
const LINGER_MS = 2_000;

/**
 * Writes the response and ends the connection. Where the socket belongs to the response to another request, which these bytes would be
 * read as a part of, the connection ends with that one instead, or after LINGER_MS.
 */
export async function writeResponse(socket: Duplex, response: Response, status = response.status): Promise<void> {
  // Node has detached the socket: without a listener an error event would end the process.
  socket.on('error', () => {});
  const body = Buffer.from(await response.arrayBuffer());
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const lingering = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(lingering));
  const underWay = responseUnderWay(socket);
  if (underWay !== undefined && isInUse(underWay)) {
    if (!underWay.headersSent) underWay.setHeader('Connection', 'close');
    afterResponses(socket, () => socket.end().resume());
    return;
  }
  const headers = [...response.headers, ['Content-Length', body.length], ['Connection', 'close']];
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...headers.map((header) => header.join(': '))];
  socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]));
  socket.resume();
}

/** Whether a response has begun, or is still due for a request that has arrived whole. */
function isInUse(response: ServerResponse): boolean {
  return response.headersSent || response.req.complete;
}

export function responseUnderWay(socket: Duplex): ServerResponse | undefined {
  // Node's own field: no public one leads from a socket to its response.
  return (socket as Duplex & { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}

/**
 * Calls back once all responses to earlier requests are out, unless the connection ends first. Node has removed its
 * listeners from the socket, so these replace them: the response resumes when the socket drains, and a connection that
 * stalls or breaks is closed.
 */
export function afterResponses(socket: Duplex, proceed: () => void): void {
  const response = responseUnderWay(socket);
  if (response === undefined) {
    proceed();
    return;
  }
  const resume = () => response.emit('drain');
  const close = () => socket.destroy();
  socket.on('drain', resume).on('timeout', close).on('error', close);
  response.once('close', () => {
    socket.off('drain', resume).off('timeout', close).off('error', close);
    if (socket.writable) afterResponses(socket, proceed);
  });
}
