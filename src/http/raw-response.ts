// An HTTP/1.1 answer written to a bare socket, where Node offers no response object: upgrades and broken requests.
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

/** Writes the response and ends the connection. */
export async function writeResponse(socket: Duplex, response: Response, status = response.status): Promise<void> {
  // Node has let go of the socket: a peer that breaks off would otherwise end the process.
  socket.on('error', () => {});
  const body = Buffer.from(await response.arrayBuffer());
  if (!socket.writable) return;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    `Content-Length: ${body.length}`,
  ];
  response.headers.forEach((value, name) => {
    head.push(`${name}: ${value}`);
  });
  socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]));
}
