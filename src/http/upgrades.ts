// Raw sockets that Node hands over: a request for an upgrade that is not offered is served without it; rejected handshakes and bytes
// that are not HTTP get an error in the usual form.
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import { detach } from '../process/detach.ts';
import { type ForumError, invalid } from '../vocabulary/errors.ts';
import { afterResponses, responseUnderWay, writeResponse } from './bare-socket.ts';
import { type Hardening, headProblem, headTooLarge, statusOfHead, VERSIONS } from './request-hardening.ts';
import { errorResponse, HttpError } from './response.ts';

const STREAM_TARGET = /^([^?]*\/chambers\/[^/?]+\/stream|\/events)(\?|$)/;

interface SocketHardening extends Pick<Hardening, 'requestLimit' | 'headBytesMax' | 'hosts'> {
  readonly webSockets: WebSocketServer;
}

export function hardenSockets(server: Server, { webSockets, ...hardening }: SocketHardening): void {
  const { requestLimit, headBytesMax } = hardening;
  // The first listener, because the adapter ignores a request whose Upgrade header is removed here.
  server.prependListener('upgrade', (request: IncomingMessage, socket: Duplex, rest: Buffer) => {
    const { method, url = '', headers, httpVersion } = request;
    const { upgrade } = headers;
    if (responseUnderWay(socket) !== undefined) {
      delete headers.upgrade;
      afterResponses(socket, () => {
        headers.upgrade = upgrade;
        server.emit('upgrade', request, socket, rest);
      });
      return;
    }
    const isGet = method === 'GET' && httpVersion === '1.1';
    const isOffered = isGet && upgrade?.toLowerCase() === 'websocket' && STREAM_TARGET.test(url);
    const problem = isOffered
      ? (requestLimit(request) ?? headProblem(request, hardening) ?? versionProblem(headers))
      : undefined;
    if (isOffered && problem === undefined) return;
    delete headers.upgrade;
    if (problem === undefined) serveWithoutUpgrade(server, request, socket, rest);
    else detach(writeResponse(socket, errorResponse(problem), statusOfHead(problem)));
  });
  webSockets.on('wsClientError', (error: Error, socket: Duplex) => {
    detach(writeResponse(socket, errorResponse(invalid(`handshake: ${error.message}`))));
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    const allowed = { Allow: 'GET, HEAD, OPTIONS, POST, PUT' };
    const problem = new HttpError('FORUM_ERR_METHOD', 'CONNECT: this server is not a proxy', allowed);
    afterResponses(socket, () => detach(writeResponse(socket, errorResponse(problem))));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else if (error.code === 'HPE_HEADER_OVERFLOW') {
      detach(writeResponse(socket, errorResponse(headTooLarge(headBytesMax)), 431));
    } else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      detach(writeResponse(socket, errorResponse(invalid('the request did not arrive in time')), 408));
    } else {
      const detail = error.code === 'HPE_INVALID_VERSION' ? VERSIONS : 'the bytes are not an HTTP request';
      detach(writeResponse(socket, errorResponse(invalid(detail))));
    }
  });
}

/** RFC 6455, 4.4: a client with another version is told the supported one. */
function versionProblem(headers: IncomingMessage['headers']): ForumError | undefined {
  if (headers['sec-websocket-version'] === '13') return undefined;
  return new HttpError('FORUM_ERR_VALIDATION', 'Sec-WebSocket-Version: must be 13', { 'Sec-WebSocket-Version': '13' });
}

/**
 * A server may ignore Upgrade (RFC 9110, 7.8). Node has detached the socket by then, so the request is fed to the server again
 * without the field; `rest` holds the bytes after its head.
 */
function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, rest: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.toLowerCase() !== 'upgrade') head += `${name}: ${rawHeaders[index + 1]}\r\n`;
  }
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), rest]));
  server.emit('connection', socket);
}
