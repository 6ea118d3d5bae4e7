// A request that asks for another protocol than it is offered (RFC 9110, 7.8: a server may ignore Upgrade): Node has let go of
// its socket by then, so it is handed in again without the field, and is a request like any other.
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** `rest` are the bytes that came after the head. */
export function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, rest: Buffer): void {
  socket.unshift(Buffer.concat([Buffer.from(headOf(request), 'latin1'), rest]));
  server.emit('connection', socket);
}

function headOf({ method, url, httpVersion, rawHeaders }: IncomingMessage): string {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.toLowerCase() !== 'upgrade') head += `${name}: ${rawHeaders[index + 1]}\r\n`;
  }
  return `${head}\r\n`;
}
