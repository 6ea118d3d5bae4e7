// Handles sockets that Node passes on without a response object: WebSocket handshakes, other upgrades, CONNECT, and bytes that are not
// HTTP. The reasons are in the README, "What Node leaves to the service".
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import { WebSocketServer } from 'ws';
import type { HandshakeBindings } from '../connections/carrier.ts';
import { detach } from '../process/detach.ts';
import { type ForumError, invalid } from '../vocabulary/errors.ts';
import type { Hardening } from './request-hardening.ts';
import { type RequestHeads, statusOfHead, VERSIONS } from './request-head.ts';
import { errorParts, HttpError } from './response.ts';

export type Fetch = (request: Request, env: HttpBindings) => Response | Promise<Response>;

const STREAM_TARGET = /^([^?]*\/chambers\/[^/?]+\/stream|\/events)(\?|$)/;
/** Consumers send nothing on a stream. */
const MESSAGE_BYTES_MAX = 1_024;

interface UpgradeOptions extends Pick<Hardening, 'requestLimit' | 'heads' | 'pipelines'> {
  readonly fetch: Fetch;
}

export function handleUpgrades(server: Server, { fetch, requestLimit, heads, pipelines }: UpgradeOptions): void {
  const openWebSocket = webSocketOpener(fetch);
  // Node's own listener; the other listeners have already seen the connection.
  const [serveConnection] = server.listeners('connection') as [(socket: Socket) => void];
  server.on('upgrade', (request: IncomingMessage, socket: Socket, rest: Buffer) => {
    pipelines.whenSent(socket, () => {
      if (!isHandshake(request)) {
        // A server may ignore Upgrade (RFC 9110, 7.8).
        socket.unshift(Buffer.concat([headWithoutUpgrade(request), rest]));
        serveConnection.call(server, socket);
        return;
      }
      const problem = requestLimit(request) ?? heads.problemOf(request) ?? versionProblem(request);
      if (problem === undefined) openWebSocket(request, socket, rest);
      else writeError(socket, problem, statusOfHead(problem));
    });
  });
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    const allowed = { Allow: 'GET, HEAD, OPTIONS, POST, PUT' };
    const problem = new HttpError('FORUM_ERR_METHOD', 'CONNECT: this server is not a proxy', allowed);
    pipelines.whenSent(socket, () => writeError(socket, problem));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const response = pipelines.unsentResponse(socket);
    if (response === undefined) {
      writeError(socket, ...problemOf(error, heads));
      return;
    }
    // The client would take the error as part of this response. So the error follows it, or no error is sent if this response can still
    // declare itself the last one.
    if (response.headersSent) pipelines.whenSent(socket, () => writeError(socket, ...problemOf(error, heads)));
    else {
      response.setHeader('Connection', 'close');
      pipelines.whenSent(socket, () => socket.end());
    }
    linger(socket);
  });
}

function isHandshake({ method, url = '', headers, httpVersion }: IncomingMessage): boolean {
  const isWebSocket = headers.upgrade?.toLowerCase() === 'websocket';
  return isWebSocket && method === 'GET' && httpVersion === '1.1' && STREAM_TARGET.test(url);
}

function headWithoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.toLowerCase() !== 'upgrade') head += `${name}: ${rawHeaders[index + 1]}\r\n`;
  }
  return Buffer.from(`${head}\r\n`, 'latin1');
}

/** Returns an error that names the supported version (RFC 6455, 4.4). */
function versionProblem({ headers }: IncomingMessage): ForumError | undefined {
  if (headers['sec-websocket-version'] === '13') return undefined;
  return new HttpError('FORUM_ERR_VALIDATION', 'Sec-WebSocket-Version: must be 13', { 'Sec-WebSocket-Version': '13' });
}

/** Passes handshakes to the routes. A route that accepts a handshake sets `onWebSocket`, and its headers are sent with the 101. */
function webSocketOpener(fetch: Fetch) {
  const server = new WebSocketServer({
    noServer: true,
    // No subprotocol is supported, and ws would accept the first that the client offers.
    handleProtocols: () => false,
    // Liveness tracks the clients.
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MESSAGE_BYTES_MAX,
  });
  server.on('wsClientError', (error: Error, socket: Socket) => {
    writeError(socket, invalid(`handshake: ${error.message}`));
  });

  async function open(incoming: IncomingMessage, socket: Socket, rest: Buffer): Promise<void> {
    const { url, headers } = incoming;
    const fields = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
    const bindings: HandshakeBindings = { incoming, onWebSocket: undefined };
    // Hono's type lacks the bindings of handshakes.
    const env = bindings as HandshakeBindings & HttpBindings;
    const response = await fetch(new Request(`http://${headers.host}${url}`, { headers: fields }), env);
    const { onWebSocket } = bindings;
    if (onWebSocket === undefined) {
      writeResponse(socket, response.status, [...response.headers], await response.text());
      return;
    }
    const addHeaders = (lines: string[]) => lines.push(...[...response.headers].map((header) => header.join(': ')));
    server.on('headers', addHeaders);
    server.handleUpgrade(incoming, socket, rest, onWebSocket);
    server.off('headers', addHeaders);
  }

  return (incoming: IncomingMessage, socket: Socket, rest: Buffer) => {
    // Node has removed its listener: an error event would end the process.
    socket.on('error', () => {});
    detach(open(incoming, socket, rest), (error) => writeError(socket, error));
  };
}

function problemOf({ code }: NodeJS.ErrnoException, heads: RequestHeads): [problem: ForumError, status: number] {
  if (code === 'HPE_HEADER_OVERFLOW') return [heads.tooLarge(), 431];
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return [invalid('the request did not arrive in time'), 408];
  return [invalid(code === 'HPE_INVALID_VERSION' ? VERSIONS : 'the bytes are not an HTTP request'), 400];
}

function writeError(socket: Socket, error: unknown, status?: number): void {
  const parts = errorParts(error);
  writeResponse(socket, status ?? parts.status, Object.entries(parts.headers), parts.body);
}

function writeResponse(
  socket: Socket,
  status: number,
  headers: readonly (readonly [name: string, value: string])[],
  body: string,
): void {
  const framing = [`Content-Length: ${Buffer.byteLength(body)}`, 'Connection: close'];
  const fields = [...headers.map((header) => header.join(': ')), ...framing];
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields.join('\r\n')}\r\n\r\n${body}`);
  linger(socket);
}

/** How long a peer may take to read the response and end its side. Bytes that it still sends are discarded. */
const LINGER_MS = 2_000;

function linger(socket: Socket): void {
  // Node has removed its listener: an error event would end the process.
  socket.on('error', () => {}).resume();
  const lingering = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(lingering));
}
