// What stands before the routes: requests that two readers could read differently are rejected, upgrades that are not
// offered are served without, and bytes that are not HTTP get an error in the usual form.
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { HttpBindings } from '@hono/node-server';
import type { WebSocketServer } from 'ws';
import { ForumError } from '../vocabulary/errors.ts';
import { errorResponse } from './response.ts';

/** Why a request is rejected before anything of it is read: too many from its address, or the service is stopping. */
export type Admission = (incoming: IncomingMessage) => ForumError | undefined;

/**
 * Makes node:http's createServer, with rejected and ambiguous requests answered before the adapter sees them, and one
 * request of a connection under way at a time.
 */
export function hardenedServer(admission: Admission) {
  return (options: ServerOptions, listener: RequestListener): Server => {
    const server = createServer(options, function handle(incoming, outgoing): void {
      // Node hands in every pipelined request that it has parsed. One whose response is not the connection's current one
      // waits until it is, and nothing more is read meanwhile.
      if (outgoing.socket === null) {
        incoming.socket.pause();
        outgoing.once('socket', (socket: Socket) => {
          socket.resume();
          handle(incoming, outgoing);
        });
        return;
      }
      const problem = admission(incoming) ?? targetProblem(incoming);
      if (problem === undefined) listener(incoming, outgoing);
      else respond(outgoing, problem);
    });
    return server.on('checkExpectation', (_incoming, outgoing: ServerResponse) => {
      respond(outgoing, invalid('Expect: only 100-continue is supported'), 417);
    });
  };
}

function respond(outgoing: ServerResponse, problem: ForumError, status: number = problem.status): void {
  const body = Buffer.from(JSON.stringify(problem.toBody()));
  const headers = Object.fromEntries(errorResponse(problem).headers);
  outgoing.writeHead(status, { ...headers, 'Content-Length': body.length, Connection: 'close' }).end(body);
}

// Without a backslash, which URL parsers take for a slash, and without a fragment, which is no part of a target.
const PRINTABLE_ASCII = /^[!"$-[\]-~]*$/;
const HOST = /^[\w.:[\]-]+$/;
/** Every URL parser reads these alike. */
const ORDINARY_HOST = /^[\w.-]+(:[1-5]?\d{1,4})?$/;
const ORDINARY_TARGET = /^\/[\w\-/?=&.]*$/;

/** A Host or Content-Type twice (Node takes the first, others may not), an absolute-form or a non-ASCII target. */
function targetProblem({ url: target = '', headers, rawHeaders }: IncomingMessage): ForumError | undefined {
  const { host = '' } = headers;
  let hosts = 0;
  let types = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
    else if (name.length === 12 && name.toLowerCase() === 'content-type') types++;
  }
  if (hosts > 1) return invalid('the request has two host headers');
  if (types > 1) return invalid('the request has two content-type headers');
  if (ORDINARY_HOST.test(host) && ORDINARY_TARGET.test(target)) return undefined;
  if (!target.startsWith('/')) return invalid('the request target must be a path: absolute-form is not accepted');
  if (!PRINTABLE_ASCII.test(target)) return invalid('the request target must be printable ASCII without \\ and #');
  if (HOST.test(host) && URL.canParse(`http://${host}${target}`)) return undefined;
  return invalid('the Host header or the request target is malformed');
}

export type Fetch = (request: Request, env: HttpBindings) => Response | Promise<Response>;

/** Answers a rejected handshake with the usual body, which the adapter would leave out, as upgrades have no response object. */
export function withUpgradeErrors(fetch: Fetch): Fetch {
  return (request, env) => {
    const response = fetch(request, env);
    return (env as Partial<HttpBindings>).outgoing === undefined ? finishUpgrade(response, env) : response;
  };
}

async function finishUpgrade(pending: Response | Promise<Response>, { incoming }: HttpBindings): Promise<Response> {
  const response = await pending;
  const isAccepted = response.status === 200 && response.body === null;
  if (!isAccepted) await writeResponse(incoming.socket, response);
  return response;
}

const STREAM_TARGET = /^[^?]*\/chambers\/[^/?]+\/stream(\?|$)/;

export function hardenSockets(server: Server, webSockets: WebSocketServer, admission: Admission): void {
  // First of the listeners: the adapter ignores a request whose Upgrade header is gone.
  server.prependListener('upgrade', (request: IncomingMessage, socket: Duplex, rest: Buffer) => {
    const { method, url = '', headers } = request;
    const isOffered = method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && STREAM_TARGET.test(url);
    const problem = isOffered ? (admission(request) ?? targetProblem(request)) : undefined;
    if (isOffered && problem === undefined) return;
    delete headers.upgrade;
    if (problem === undefined) serveWithoutUpgrade(server, request, socket, rest);
    else void writeResponse(socket, errorResponse(problem));
  });
  webSockets.on('wsClientError', (error: Error, socket: Duplex) => {
    void writeResponse(socket, errorResponse(invalid(`handshake: ${error.message}`)));
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    const headers = { Allow: 'GET, HEAD, OPTIONS, POST, PUT' };
    const problem = new ForumError('FORUM_ERR_METHOD', 'CONNECT: this server is not a proxy', { headers });
    void writeResponse(socket, errorResponse(problem));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else if (error.code === 'HPE_HEADER_OVERFLOW') {
      const problem = new ForumError('FORUM_ERR_TOO_LARGE', 'the request head is too large');
      void writeResponse(socket, errorResponse(problem), 431);
    } else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      void writeResponse(socket, errorResponse(invalid('the request did not arrive in time')), 408);
    } else void writeResponse(socket, errorResponse(invalid('the bytes are not an HTTP request')));
  });
}

/**
 * A server may ignore Upgrade (RFC 9110, 7.8). Node has detached the socket by then, so the request is handed in again
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

/** How long a peer may take to read the response and end its side; what it still sends is discarded. */
const LINGER_MS = 2_000;

/** Writes the response to a bare socket, where Node offers no response object, and ends the connection. */
async function writeResponse(socket: Duplex, response: Response, status = response.status): Promise<void> {
  // Node has detached the socket: an error of it without a listener would end the process.
  socket.on('error', () => {});
  const body = Buffer.from(await response.arrayBuffer());
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const headers = [...response.headers, ['Content-Length', body.length], ['Connection', 'close']];
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...headers.map((header) => header.join(': '))];
  socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]));
  const lingering = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(lingering));
  socket.resume();
}

function invalid(detail: string): ForumError {
  return new ForumError('FORUM_ERR_VALIDATION', detail);
}
