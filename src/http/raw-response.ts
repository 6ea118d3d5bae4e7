// An HTTP/1.1 answer written to a bare socket, where Node offers no response object: upgrades and broken requests.
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** How long a peer may take to read the answer and to end its side; what it still sends meanwhile is thrown away. */
const LINGER_MS = 2_000;

/** Writes the response, which is read into memory, and ends the connection. */
export async function writeResponse(socket: Duplex, response: Response, status = response.status): Promise<void> {
  // Node has let go of the socket: a peer that breaks off would otherwise end the process.
  socket.on('error', () => {});
  const body = Buffer.from(await response.arrayBuffer());
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    `Content-Length: ${body.length}`,
  ];
  response.headers.forEach((value, name) => {
    head.push(`${name}: ${value}`);
  });
  socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]));
  const lingering = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(lingering));
  socket.resume();
}
